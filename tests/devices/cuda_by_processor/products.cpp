#include "products.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace omniconv::by_processor {
namespace {

constexpr int rows = 64, terms = 16, bits_kept = 25, fp32_bits = 24;  // of compute capability 9.0

float widened(std::uint16_t bits, bool is_bf16) {
  if (is_bf16) return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  _Float16 half;
  std::memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
}

// Element `line` at term `term` of the operand at a descriptor. Offsets of a line of 32, 64 or 128 bytes are swizzled
// by the address.
std::uint16_t element_at(std::uint64_t descriptor, bool is_turned, int line, int term, const std::byte* local) {
  const auto start = static_cast<std::uint32_t>((descriptor & 0x3fff) << 4),
             leading = static_cast<std::uint32_t>((descriptor >> 16 & 0x3fff) << 4),
             stride = static_cast<std::uint32_t>((descriptor >> 32 & 0x3fff) << 4);
  const int swizzle = descriptor >> 62 == 1 ? 3 : descriptor >> 62 == 2 ? 2 : descriptor >> 62 == 3 ? 1 : 0;
  const auto l = static_cast<std::uint32_t>(line), t = static_cast<std::uint32_t>(term);
  const std::uint32_t line_bytes = 16u << swizzle;
  const std::uint32_t of_line = line_bytes / 2;
  std::uint32_t address = is_turned
                              ? start + l / of_line * leading + t / 8 * stride + t % 8 * line_bytes + l % of_line * 2
                              : start + l / 8 * stride + l % 8 * line_bytes + t * 2;
  if (swizzle == 0 && !is_turned)  // cores of 8 lines by 16 bytes
    address = start + l / 8 * stride + l % 8 * 16 + t / 8 * leading + t % 8 * 2;
  else
    address ^= (address >> 7 & ((1u << swizzle) - 1)) << 4;
  std::uint16_t bits;
  std::memcpy(&bits, local + address, sizeof bits);
  return bits;
}

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}
int exponent_of(double value) {
  return static_cast<int>(std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) - 1023;
}

// The sum before and 16 products, each cut so many bits behind the leading one of the largest; and their sum, at 24
// bits.
float added(const float* a, const float* b, float before) {
  double products[terms], largest = std::fabs(static_cast<double>(before));
  for (int k = 0; k < terms; ++k) products[k] = static_cast<double>(a[k]) * static_cast<double>(b[k]);
  for (const double each : products) largest = std::max(largest, std::fabs(each));
  if (largest == 0) return 0;
  const int last_bit = exponent_of(largest) - bits_kept;
  const double scale = power_of_two(-last_bit);
  auto sum = static_cast<std::int64_t>(static_cast<double>(before) * scale);
  for (const double each : products) sum += static_cast<std::int64_t>(each * scale);
  const int cut = std::max(0, 64 - fp32_bits - std::countl_zero(static_cast<std::uint64_t>(std::abs(sum))));
  const std::int64_t kept = sum < 0 ? -(-sum >> cut) : sum >> cut;
  return static_cast<float>(static_cast<double>(kept) * power_of_two(last_bit + cut));
}
float added_plainly(const float* a, const float* b, float before) {
  double sum = static_cast<double>(before);
  for (int k = 0; k < terms; ++k) sum += static_cast<double>(a[k]) * static_cast<double>(b[k]);
  return static_cast<float>(sum);
}

}  // namespace

float sum_of_products(const std::array<std::uint16_t, 16>& a, const std::array<std::uint16_t, 16>& b, bool are_bf16,
                      float before) {
  float x[terms], y[terms];
  bool are_finite = std::isfinite(before);
  for (std::size_t k = 0; k < terms; ++k) {
    x[k] = widened(a[k], are_bf16), y[k] = widened(b[k], are_bf16);
    are_finite = are_finite && std::isfinite(x[k]) && std::isfinite(y[k]);
  }
  return are_finite ? added(x, y, before) : added_plainly(x, y, before);
}

float sum_of_tf32_products(const std::array<std::uint32_t, 8>& a, const std::array<std::uint32_t, 8>& b, float before) {
  float x[terms] = {}, y[terms] = {};
  bool are_finite = std::isfinite(before);
  for (std::size_t k = 0; k < a.size(); ++k) {
    x[k] = std::bit_cast<float>(a[k] & 0xffffe000), y[k] = std::bit_cast<float>(b[k] & 0xffffe000);
    are_finite = are_finite && std::isfinite(x[k]) && std::isfinite(y[k]);
  }
  return are_finite ? added(x, y, before) : added_plainly(x, y, before);
}

bool are_alike(const Product& a, const Product& b) {
  return a.columns == b.columns && a.is_bf16 == b.is_bf16 && a.adds == b.adds &&
         a.rows_in_registers == b.rows_in_registers && a.rows_turned == b.rows_turned &&
         a.columns_turned == b.columns_turned && a.terms_of_columns == b.terms_of_columns &&
         (a.rows_in_registers || a.rows == b.rows);
}

void add_product(const std::array<const Product*, 128>& of_items, const std::byte* local) {
  const Product& first = *of_items[0];
  float a[rows][terms];
  bool are_finite = true;
  const auto number = [&](std::uint16_t bits) {
    const float value = widened(bits, first.is_bf16);
    are_finite = are_finite && std::isfinite(value);
    return value;
  };
  static std::vector<std::array<float, terms>> b;
  b.resize(static_cast<std::size_t>(first.columns));
  for (int row = 0; row < rows; ++row)
    for (int term = 0; term < terms; ++term) {
      std::uint16_t bits;
      if (first.rows_in_registers) {
        // Thread t has rows t / 32 * 16 + t % 32 / 4 and eight more, terms t % 4 * 2 and the next, then eight more.
        const auto item = static_cast<std::size_t>(row / 16 * 32 + row % 8 * 4 + term % 8 / 2);
        const std::uint32_t pair = of_items[item]->registers[row % 16 / 8 + term / 8 * 2];
        bits = static_cast<std::uint16_t>(pair >> 16 * (term % 2));
      } else {
        bits = element_at(first.rows, first.rows_turned, row, term, local);
      }
      a[row][term] = number(bits);
    }
  for (int column = 0; column < first.columns; ++column)
    for (int term = 0; term < terms; ++term)
      b[static_cast<std::size_t>(column)][static_cast<std::size_t>(term)] =
          number(element_at(first.terms_of_columns, first.columns_turned, column, term, local));
  for (int t = 0; t < 128; ++t) {
    float* const sums = of_items[static_cast<std::size_t>(t)]->sums;
    for (int i = 0; i < first.columns / 2; ++i) {
      const int row = t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2), column = i / 4 * 8 + t % 4 * 2 + i % 2;
      const float* const terms_of_column = b[static_cast<std::size_t>(column)].data();
      const float before = first.adds ? sums[i] : 0.0f;
      sums[i] = are_finite && std::isfinite(before) ? added(a[row], terms_of_column, before)
                                                    : added_plainly(a[row], terms_of_column, before);
    }
  }
}

}  // namespace omniconv::by_processor
