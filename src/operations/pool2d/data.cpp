#include "operations/pool2d/data.h"

#include <cstring>
#include <limits>
#include <random>

#include "core/convert.h"

namespace omniconv::operations {
namespace {

// A prime number, as in operations/random.cpp: gigabytes are made by copying.
constexpr std::int64_t period = 1'048'583;

// The number that a counter stands for (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

// Sign, exponent and fraction of a type.
struct Layout {
  int bits, fraction;
};
Layout layout_of(DataType type) {
  switch (type) {
    case DataType::f16: return {16, 10};
    case DataType::bf16: return {16, 7};
    case DataType::f64: return {64, 52};
    default: return {32, 23};
  }
}

// Any of the type's NaN.
void store_nan(DataType type, std::uint64_t random, std::byte* to) {
  const auto [bits, fraction] = layout_of(type);
  const std::uint64_t fractions = (std::uint64_t{1} << fraction) - 1, sign = random >> 63 << (bits - 1);
  const std::uint64_t exponent = ((std::uint64_t{1} << (bits - 1 - fraction)) - 1) << fraction;
  const std::uint64_t pattern = sign | exponent | std::max<std::uint64_t>(random & fractions, 1);
  std::memcpy(to, &pattern, static_cast<std::size_t>(bits / 8));  // the lowest bytes come first
}

// Calls put(p, q, element) for every element of y, in order.
template <typename Put>
void for_each_output(const Pool2dShape& shape, const Put& put) {
  const std::int64_t repeats = shape.nhwc ? shape.c : 1;
  std::int64_t at = 0;
  for (std::int64_t image = 0; image < (shape.nhwc ? shape.n : shape.n * shape.c); ++image)
    for (std::int64_t p = 0; p < shape.rows.outputs; ++p)
      for (std::int64_t q = 0; q < shape.columns.outputs; ++q)
        for (std::int64_t i = 0; i < repeats; ++i) put(p, q, at++);
}

}  // namespace

void fill_with_specials(DataType type, std::uint64_t seed, std::span<std::byte> data) {
  static_assert(std::endian::native == std::endian::little);
  std::mt19937_64 random(seed);
  const std::int64_t size = size_of(type), elements = static_cast<std::int64_t>(data.size()) / size;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < std::min(elements, period); ++i) {
    std::byte* const to = data.data() + i * size;
    const std::uint64_t bits = random(), kind = bits >> 8 & 63;
    if (i / 97 % 5 == 4)  // stretches
      store_element(type, -infinity, to);
    else if (kind == 0)
      store_nan(type, random(), to);
    else if (kind < 3)
      store_element(type, kind == 1 ? infinity : -infinity, to);
    else if (kind < 12)
      store_element(type, kind % 2 == 0 ? 0.0 : -0.0, to);
    else
      store_element(type, static_cast<double>(static_cast<std::int64_t>(bits & 7) - 5), to);
  }
  for (std::int64_t i = period; i < elements; i += period)
    std::memcpy(data.data() + i * size, data.data(), static_cast<std::size_t>(std::min(period, elements - i) * size));
}

void fill_indices(const Pool2dShape& shape, std::uint64_t seed, std::span<std::byte> data) {
  for_each_output(shape, [&](std::int64_t p, std::int64_t q, std::int64_t at) {
    const PoolRange rows = shape.rows.taps_of(p), columns = shape.columns.taps_of(q);
    const std::uint64_t bits = mixed(seed << 40 ^ static_cast<std::uint64_t>(at));
    const auto pick = [](const PoolRange& range, std::uint64_t random) {
      return range.first + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(range.count()));
    };
    const auto index =
        static_cast<std::int32_t>(pick(rows, bits >> 32) * shape.columns.taps + pick(columns, bits & 0xFFFFFFFF));
    std::memcpy(data.data() + at * 4, &index, sizeof index);
  });
}

void fill_multiples(const Pool2dShape& shape, DataType type, std::uint64_t seed, std::span<std::byte> data) {
  for_each_output(shape, [&](std::int64_t p, std::int64_t q, std::int64_t at) {
    const std::uint64_t bits = mixed(seed << 40 ^ static_cast<std::uint64_t>(at));
    const auto share = static_cast<double>(1 << (bits >> 8) % 3);  // powers of two add no digit to the divisor's
    store_element(type, (bits % 2 == 0 ? share : -share) * static_cast<double>(shape.divisor(p, q)),
                  data.data() + at * size_of(type));
  });
}

bool are_multiples_exact(const Pool2dShape& shape, DataType type) {
  const std::int64_t most = shape.rows.taps * shape.columns.taps;
  const std::int64_t stored = type == DataType::bf16 ? 1 << 8 : type == DataType::f16 ? 1 << 11 : 1 << 20;
  const double terms =
      static_cast<double>(shape.rows.most_windows()) * static_cast<double>(shape.columns.most_windows());
  return most <= stored && terms * 4 * static_cast<double>(most) <= 0x1p24;
}

}  // namespace omniconv::operations
