// Which element of planes and tiles meets which in gemm/split, against the definition: the kernels' own text, without a
// device.
#include "operations/gemm/split/matrices.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "../error_testing.h"
#include "core/convert.h"
#include "omniconv/problem.h"

#include "kernel_by_processor.h"

namespace omniconv::operations::split_gemm {
namespace {

using namespace by_processor;

// A copy of a box: what is outside of the extents is zero.
struct tensor_map_t {
  const ushort* base;
  const devices::TensorMap* map;
};
std::vector<ushort> stage(4 * 128 * 64);
void copy_box(uint to, const tensor_map_t& from, int x, int y, int z, uint) {
  const devices::TensorMap& map = *from.map;
  for (std::int64_t j = 0; j < map.box[1]; ++j)
    for (std::int64_t i = 0; i < map.box[0]; ++i) {
      const bool inside = x + i < map.extents[0] && y + j < map.extents[1] && z < map.extents[2];
      stage[static_cast<std::size_t>(to / 2 + j * map.box[0] + i)] =
          inside ? from.base[x + i + (y + j) * map.strides_bytes[0] / 2 + z * map.strides_bytes[1] / 2] : ushort{0};
    }
}

#define MAXIMA 3
#define STAGING (16 * 160)
#define SWAPPED (TILE_N >= 64)
#define WARPGROUPS (SWAPPED ? TILE_N / 64 : 2)
#define GROUP (128 * (1 + WARPGROUPS))
#define SUMS (TILE_N == 32 ? 16 : 64)
#define A_PLANE A_BYTES
#define PLANES (PRODUCTS == 3 ? 2 : 1)
#define A_BYTES (128 * 128)
#define B_BYTES (TILE_N * 128)
#define WIDENED_PART(bits) widened(PART == TYPE_f16 ? DataType::f16 : DataType::bf16, bits)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

// Operands whose terms lie side by side, and whose rows do: a and b of f32 become planes along their lines or turned,
// those of bf16 along their lines.
#define PRODUCTS 3
#define SAMPLES 0
#define TILE_N 64
#define TRANSPOSED 0
namespace f32_nn {
#include "split_matrices-inl.h"
}
#undef SAMPLES
#define SAMPLES 3
namespace f32_nn_of_samples {
#include "split_matrices-inl.h"
}
#undef SAMPLES
#undef TRANSPOSED
#define SAMPLES 0
#define TRANSPOSED 1
namespace f32_tt {
#include "split_matrices-inl.h"
}
#undef PRODUCTS
#undef TILE_N
#define PRODUCTS 1
#define TILE_N 32
namespace bf16_tt {
#include "split_matrices-inl.h"
}
#undef TRANSPOSED
#undef TILE_N
#define TRANSPOSED 0
#define TILE_N 128
namespace bf16_nn {
#include "split_matrices-inl.h"
}
#pragma GCC diagnostic pop

constexpr float none = std::numeric_limits<float>::quiet_NaN();

// Integers of at most 3; between lines and matrices no numbers.
template <typename Element>
struct Stored {
  Stored(DataType type, std::int64_t matrices, std::int64_t lines, std::int64_t length, std::int64_t line,
         std::int64_t matrix, unsigned seed)
      : type_(type), line_(line), matrix_(matrix) {
    elements.resize(static_cast<std::size_t>((matrices - 1) * matrix + (lines - 1) * line + length));
    for (Element& each : elements) put(each, none);
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < matrices; ++i)
      for (std::int64_t j = 0; j < lines; ++j)
        for (std::int64_t k = 0; k < length; ++k)
          put(elements[place(i, j, k)], static_cast<float>(static_cast<int>(random() % 7) - 3));
  }
  std::size_t place(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return static_cast<std::size_t>(i * matrix_ + j * line_ + k);
  }
  void put(Element& to, float value) { store_element(type_, value, reinterpret_cast<std::byte*>(&to)); }
  double at(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return load_element(type_, reinterpret_cast<const std::byte*>(&elements[place(i, j, k)]));
  }

  float largest() const {
    float most = 0;
    for (const Element& each : elements)
      most = std::fmax(most, std::fabs(load_element(type_, reinterpret_cast<const std::byte*>(&each))));
    return most;
  }

  std::vector<Element> elements;

 private:
  DataType type_;
  std::int64_t line_, matrix_;
};

struct Case {
  std::int64_t m, n, k, batch = 1, pad = 0, parts = 1;
  bool shares_a = false, has_none = false, has_large = false, is_sampled = false;
};

GemmTask task_of(const Case& one, const char* type_and_transposition, bool transposed) {
  GemmTask task = task_for(
      get<GemmProblem>(parse_problem(fmt::format("gemm {} m{}n{}k{}{}", type_and_transposition, one.m, one.n, one.k,
                                                 one.batch > 1 ? fmt::format(" batch{}", one.batch) : std::string()))));
  task.lda += one.pad, task.ldb += one.pad, task.ldc += one.pad;
  task.batch_a = one.shares_a ? 0 : task.lda * (transposed ? one.k : one.m) + one.pad;
  task.batch_b = task.ldb * (transposed ? one.n : one.k) + one.pad, task.batch_c = task.ldc * one.m + one.pad;
  return task;
}

// One run against the definition, to the bit.
template <typename Memory, typename Element, typename Run>
void check(const Case& one, const char* words, bool transposed, DataType type, std::int64_t columns, const Run& run) {
  SCOPED_TRACE(
      fmt::format("{} m{}n{}k{} batch{} pad{} parts{}", words, one.m, one.n, one.k, one.batch, one.pad, one.parts));
  const GemmTask task = task_of(one, words, transposed);
  auto made = matrix_task(task);
  ASSERT_TRUE(std::holds_alternative<MatrixTask>(made)) << std::get<std::string>(made);
  MatrixTask& product = std::get<MatrixTask>(made);
  product.cut(columns, one.parts);
  Stored<Element> a(type, one.shares_a ? 1 : one.batch, transposed ? one.k : one.m, transposed ? one.m : one.k,
                    task.lda, task.batch_a, 1),
      b(type, one.batch, transposed ? one.n : one.k, transposed ? one.k : one.n, task.ldb, task.batch_b, 2),
      bias(type, 1, 1, transposed ? one.m : one.n, one.m + one.n, 0, 3);
  if (one.has_none) a.put(a.elements[one.is_sampled ? a.place(0, 1, 40) : a.place(0, 0, 0)], none);
  if (one.has_large) a.put(a.elements[a.place(0, 1, 30)], 0x1p18f), b.put(b.elements[b.place(0, 7, 1)], -0x1p17f);
  Stored<float> c(DataType::f32, one.batch, one.m, one.n, task.ldc, task.batch_c, 4);
  const Stored<float> before = c;
  Memory memory{reinterpret_cast<decltype(Memory::a)>(a.elements.data()),
                reinterpret_cast<decltype(Memory::b)>(b.elements.data()),
                reinterpret_cast<decltype(Memory::bias)>(bias.elements.data()),
                reinterpret_cast<decltype(Memory::c)>(c.elements.data())};
  run(product, 2.0f, has_quads(product.a), has_quads(product.b), memory);
  // What lies between lines is not looked at.
  if (type == DataType::f32 && !one.has_none && !one.is_sampled) {
    EXPECT_EQ(memory.largest, (std::array{std::bit_cast<uint>(a.largest()), std::bit_cast<uint>(b.largest())}));
  }
  std::vector<float> expected = before.elements;
  for (std::int64_t i = 0; i < one.batch; ++i)
    for (std::int64_t row = 0; row < one.m; ++row)
      for (std::int64_t column = 0; column < one.n; ++column) {
        double sum = 0;
        const std::int64_t of_a = one.shares_a ? 0 : i;
        for (std::int64_t t = 0; t < one.k; ++t)
          sum += transposed ? a.at(of_a, t, row) * b.at(i, column, t) : a.at(of_a, row, t) * b.at(i, t, column);
        sum = 2 * sum + bias.at(0, 0, transposed ? row : column) + (transposed ? before.at(i, row, column) : 0);
        expected[before.place(i, row, column)] = static_cast<float>(transposed && sum < 0 ? 0 : sum);
      }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i]))
      ASSERT_TRUE(std::isnan(c.elements[i])) << i << ": " << c.elements[i];
    else
      ASSERT_EQ(c.elements[i], expected[i]) << i;
  }
}

constexpr Case cases[] = {
    {.m = 1, .n = 1, .k = 1},
    {.m = 17, .n = 33, .k = 129},
    {.m = 129, .n = 70, .k = 64, .batch = 2},
    {.m = 257, .n = 131, .k = 72, .pad = 4},
    {.m = 136, .n = 72, .k = 80, .batch = 2, .pad = 8},  // 16-bit operands are copied as they are stored
    {.m = 65, .n = 40, .k = 257, .batch = 2, .pad = 3, .parts = 2},
    {.m = 130, .n = 36, .k = 520, .batch = 2, .parts = 4, .shares_a = true},
};

TEST(SplitMatrices, MultipliesWhatTheDefinitionMultiplies) {
  for (const Case& one : cases) {
    check<f32_nn::Memory, float>(one, "f32 nn", false, DataType::f32, 64, f32_nn::run);
    check<f32_tt::Memory, float>(one, "f32 tt", true, DataType::f32, 64, f32_tt::run);
    check<bf16_nn::Memory, std::uint16_t>(one, "bf16 nn", false, DataType::bf16, 128, bf16_nn::run);
    check<bf16_tt::Memory, std::uint16_t>(one, "bf16 tt", true, DataType::bf16, 32, bf16_tt::run);
  }
}

// By the definition, where a number is none.
TEST(SplitMatrices, ComputesPlainlyWhatHasNoScale) {
  for (const Case& one : {Case{.m = 17, .n = 33, .k = 129, .has_none = true},
                          Case{.m = 20, .n = 12, .k = 300, .batch = 2, .pad = 3, .parts = 2, .has_none = true}})
    check<f32_nn::Memory, float>(one, "f32 nn", false, DataType::f32, 64, f32_nn::run);
}

// A number that no sample has, too large for the scale of those that it has: its array's parts are made again.
TEST(SplitMatrices, MendsPartsThatSamplesDidNotScale) {
  for (const bool has_large : {false, true})
    for (const bool has_none : {false, true}) {
      const Case one{.m = 40, .n = 36, .k = 200, .has_none = has_none, .has_large = has_large, .is_sampled = true};
      check<f32_nn_of_samples::Memory, float>(one, "f32 nn", false, DataType::f32, 64, f32_nn_of_samples::run);
    }
}

// Every tile once, in bands of eight rows of them.
TEST(SplitMatrices, TilesFollowEachOtherInBands) {
  for (const auto& [m, n, parts] : {std::array{128 * 8, 64, 1}, std::array{128 * 19 + 1, 64 * 5 - 1, 2},
                                    std::array{128 * 3, 64 * 20, 1}, std::array{1, 1, 3}}) {
    Case one{.m = m, .n = n, .k = 1000, .batch = 2};
    MatrixTask host = std::get<MatrixTask>(matrix_task(task_of(one, "f32 nn", false)));
    host.cut(64, parts);
    f32_nn::task_t task;
    std::memcpy(&task, &host, sizeof task);
    const int units = f32_nn::unit_count(task);
    EXPECT_EQ(units, host.tiles(64) * parts);
    std::vector<std::array<int, 5>> seen;
    for (int i = 0; i < units; ++i) {
      const auto unit = f32_nn::unit_of(task, i);
      seen.push_back({unit.matrix, unit.part, unit.m / 1024, unit.n, unit.m});
      EXPECT_EQ(unit.first, host.steps * unit.part / parts);
      EXPECT_EQ(unit.last, host.steps * (unit.part + 1) / parts);
      EXPECT_TRUE(unit.m >= 0 && unit.m < m && unit.m % 128 == 0 && unit.n >= 0 && unit.n < n && unit.n % 64 == 0);
    }
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
  }
}

TEST(SplitMatrices, KnowsWhatLiesTogether) {
  const auto made = [](const Case& one) { return std::get<MatrixTask>(matrix_task(task_of(one, "bf16 nt", false))); };
  const MatrixTask packed = made({.m = 20, .n = 24, .k = 64});
  EXPECT_TRUE(is_packed(packed.a, true) && is_packed(packed.b, true));
  EXPECT_TRUE(can_be_copied(packed.a) && has_quads(packed.a));
  const MatrixTask padded = made({.m = 20, .n = 24, .k = 64, .pad = 4});
  EXPECT_FALSE(is_packed(padded.a, true));
  EXPECT_TRUE(has_quads(padded.a));
  EXPECT_FALSE(can_be_copied(padded.a));
  const devices::TensorMap map = map_of_operand(made({.m = 20, .n = 24, .k = 70, .pad = 2}).a, 128);
  EXPECT_EQ(map.extents[0], 70);  // beyond which copies give zeros
  EXPECT_EQ(map.strides_bytes[0], 144);
}

// Rows of 16-bit numbers that lie side by side stay so: a copied line has all rows of a term.
TEST(SplitMatrices, TurnsNothingThatNeedsNoParts) {
  for (const char* const words : {"bf16 tn", "f32 tn"}) {
    const GemmTask task = task_of({.m = 20, .n = 24, .k = 70}, words, true);
    const bool turned = words[0] == 'b';
    EXPECT_EQ(is_turned(task.problem, false), turned);
    EXPECT_EQ(is_turned(task.problem, true), turned);
    const MatrixTask made = std::get<MatrixTask>(matrix_task(task));
    EXPECT_EQ(made.a.lines, turned ? 70 : 20);
    EXPECT_EQ(made.a.length, turned ? 20 : 70);
    EXPECT_EQ(box_lines(task.problem, false, 128), turned ? 64 : 128);
  }
}

TEST(SplitMatrices, RefusesWhatItCannotCount) {
  GemmTask task = task_of({.m = 8, .n = 8, .k = 8}, "f32 nn", false);
  task.problem.m = std::int64_t{1} << 30;
  EXPECT_NE(std::get<std::string>(matrix_task(task)).find("passes the 1073741824 that it counts"), std::string::npos);
  task.problem.m = 1 << 24, task.problem.k = 1 << 20;
  EXPECT_NE(std::get<std::string>(matrix_task(task)).find("blocks of 64 terms"), std::string::npos);
}

}  // namespace
}  // namespace omniconv::operations::split_gemm
