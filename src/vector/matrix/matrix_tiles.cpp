#include "vector/matrix/matrix_tiles.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>

#if defined(__x86_64__) && !defined(__ILP32__) && defined(__linux__) && defined(__GNUC__)
#define OMNICONV_HAS_AMX 1
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#define OMNICONV_HAS_AMX 0
#endif

namespace omniconv::kernels {
namespace {

#if OMNICONV_HAS_AMX

constexpr std::int64_t element = sizeof(float);

// Intel, 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18; Linux,
// Documentation/arch/x86/xstate.rst.
bool has_amx() {
  constexpr unsigned structured_features = 7, has_xgetbv = 1U << 27U, bf16_and_tiles = (1U << 22U) | (1U << 24U);
  constexpr unsigned tile_states = (1U << 17U) | (1U << 18U);
  constexpr int request_permission = 0x1023, tile_data = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & has_xgetbv) == 0) return false;
  if (__get_cpuid_count(structured_features, 0, &a, &b, &c, &d) == 0 || (d & bf16_and_tiles) != bf16_and_tiles)
    return false;
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & tile_states) == tile_states && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

// Rows and bytes of a row of each register.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0;
  std::array<std::uint8_t, 14> reserved{};
  std::array<std::uint16_t, 16> row_bytes{};
  std::array<std::uint8_t, 16> rows{};
};
static_assert(sizeof(TileConfig) == 64);

// Registers: sums of the upper and the lower rows, of the left and the right columns; rows of a; columns of b.
constexpr int sums_of[2][2] = {{0, 1}, {2, 3}}, a_of[2] = {4, 5}, b_of[2] = {6, 7};

void configure(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  TileConfig config;
  const auto set = [&](int tile, std::int64_t of_rows, std::int64_t elements) {
    const auto at = static_cast<std::size_t>(tile);
    config.rows[at] = static_cast<std::uint8_t>(std::min(of_rows, matrix_side));
    config.row_bytes[at] = static_cast<std::uint16_t>(std::min(elements, matrix_side) * element);
  };
  for (int i = 0; i < 2; ++i) {
    const std::int64_t rows_here = rows - i * matrix_side, columns_here = columns - i * matrix_side;
    if (rows_here > 0) set(a_of[i], rows_here, depth);
    if (columns_here > 0) set(b_of[i], depth, columns_here);
    for (int j = 0; j < 2; ++j)
      if (rows_here > 0 && columns > j * matrix_side) set(sums_of[i][j], rows_here, columns - j * matrix_side);
  }
  asm volatile("ldtilecfg %0" : : "m"(config));
}

template <int tile>
void load(const void* from, std::int64_t row_bytes) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_bytes), "i"(tile) : "memory");
}
template <int tile>
void store(void* to, std::int64_t row_bytes) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_bytes), "i"(tile) : "memory");
}
template <int tile>
void clear() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <int sums, int a, int b>
void add_products() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sums), "i"(a), "i"(b));
}

// Of up to 32 rows, for which the unit is configured.
template <int upper_and_lower, int left_and_right>
void multiply_by_unit(const MatrixTiles& p) {
  const auto each_sum = [&](const auto& apply) {
    const auto at = [&](int i, int j) { return p.sums + i * matrix_side * p.ld + j * matrix_side; };
    apply.template operator()<sums_of[0][0]>(at(0, 0));
    if constexpr (left_and_right == 2) apply.template operator()<sums_of[0][1]>(at(0, 1));
    if constexpr (upper_and_lower == 2) apply.template operator()<sums_of[1][0]>(at(1, 0));
    if constexpr (upper_and_lower == 2 && left_and_right == 2) apply.template operator()<sums_of[1][1]>(at(1, 1));
  };
  if (p.add)
    each_sum([&]<int tile>(const float* at) { load<tile>(at, p.ld * element); });
  else
    each_sum([&]<int tile>(const float*) { clear<tile>(); });
  const std::int64_t a_row = p.a_row * static_cast<std::int64_t>(sizeof *p.a), b_row = p.b_step * element;
  for (std::int64_t block = 0; block < p.blocks; ++block) {
    const std::uint16_t* const of_block = p.a + block * p.a_block;
    const BfloatPair* b = p.b + block * p.b_block;
    for (std::int64_t t = 0; t < p.tap_count; ++t, b += p.b_tap) {
      const std::uint16_t* const a = of_block + p.taps[t];
      load<a_of[0]>(a, a_row);
      load<b_of[0]>(b, b_row);
      add_products<sums_of[0][0], a_of[0], b_of[0]>();
      if constexpr (upper_and_lower == 2) {
        load<a_of[1]>(a + matrix_side * p.a_row, a_row);
        add_products<sums_of[1][0], a_of[1], b_of[0]>();
      }
      if constexpr (left_and_right == 2) {
        load<b_of[1]>(b + matrix_side, b_row);
        add_products<sums_of[0][1], a_of[0], b_of[1]>();
        if constexpr (upper_and_lower == 2) add_products<sums_of[1][1], a_of[1], b_of[1]>();
      }
    }
  }
  each_sum([&]<int tile>(float* at) { store<tile>(at, p.ld * element); });
}

void multiply_by_processor(const MatrixTiles& tiles) {
  MatrixTiles some = tiles;
  std::int64_t configured = 0;
  for (std::int64_t left = tiles.rows; left > 0;
       left -= matrix_tile, some.a += matrix_tile * some.a_row, some.sums += matrix_tile * some.ld) {
    some.rows = std::min(left, matrix_tile);
    if (some.rows != configured) configure(some.rows, some.columns, some.depth), configured = some.rows;
    if (some.rows > matrix_side)
      some.columns > matrix_side ? multiply_by_unit<2, 2>(some) : multiply_by_unit<2, 1>(some);
    else
      some.columns > matrix_side ? multiply_by_unit<1, 2>(some) : multiply_by_unit<1, 1>(some);
  }
  asm volatile("tilerelease");
}

#else
bool has_amx() {
  return false;
}
void multiply_by_processor(const MatrixTiles&) {}
#endif

float normal_or_zero(float value) {
  return std::abs(value) < 0x1p-126F ? std::copysign(0.0F, value) : value;
}
float number_of(std::uint16_t bits) {
  return normal_or_zero(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U));
}

void multiply_by_model(const MatrixTiles& p) {
  for (std::int64_t i = 0; i < p.rows; ++i)
    for (std::int64_t j = 0; j < p.columns; ++j) {
      float& sum = p.sums[i * p.ld + j];
      if (!p.add) sum = 0;
      for (std::int64_t block = 0; block < p.blocks; ++block)
        for (std::int64_t t = 0; t < p.tap_count; ++t) {
          const std::uint16_t* const a = p.a + block * p.a_block + p.taps[t] + i * p.a_row;
          const BfloatPair* const b = p.b + block * p.b_block + t * p.b_tap + j;
          float first = 0, second = 0;
          for (std::int64_t k = 0; k < p.depth; ++k) {
            first = normal_or_zero(std::fma(number_of(a[2 * k]), number_of(b[k * p.b_step].low), first));
            second = normal_or_zero(std::fma(number_of(a[2 * k + 1]), number_of(b[k * p.b_step].high), second));
          }
          sum = normal_or_zero(normal_or_zero(sum) + normal_or_zero(first + second));
        }
    }
}

std::atomic<MatrixUnit>& unit_in_use() {
  static std::atomic<MatrixUnit> unit = has_amx() ? MatrixUnit::processor : MatrixUnit::none;
  return unit;
}

}  // namespace

MatrixUnit matrix_unit() {
  return unit_in_use();
}
void set_matrix_unit(MatrixUnit unit) {
  unit_in_use() = unit == MatrixUnit::processor && !has_amx() ? MatrixUnit::none : unit;
}

void multiply_tiles(const MatrixTiles& tiles) {
  matrix_unit() == MatrixUnit::processor ? multiply_by_processor(tiles) : multiply_by_model(tiles);
}

}  // namespace omniconv::kernels
