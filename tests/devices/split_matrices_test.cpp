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
#include "operations/split/products.h"

#include "kernel_by_processor.h"

namespace omniconv::operations::split_gemm {
namespace {

using namespace by_processor;

// A copy of a box: what is outside of the extents is zero.
struct tensor_map_t {
  const ushort* base;
  const devices::TensorMap* map;
};
std::vector<ushort> stage(6 * 128 * 64);
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
#define PLANES (PRODUCTS == 6 ? 3 : PRODUCTS == 3 ? 2 : 1)
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
#define PRODUCTS 6
namespace six_tt {
#include "split_matrices-inl.h"
}
#undef TRANSPOSED
#define TRANSPOSED 0
namespace six_nn {
#include "split_matrices-inl.h"
}
#undef TRANSPOSED
#define TRANSPOSED 1
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

  // But zero; 0: there is none.
  float smallest() const {
    float least = std::numeric_limits<float>::infinity();
    for (const Element& each : elements) {
      const float magnitude =
          std::fabs(static_cast<float>(load_element(type_, reinterpret_cast<const std::byte*>(&each))));
      if (magnitude > 0) least = std::min(least, magnitude);
    }
    return std::isinf(least) ? 0 : least;
  }

  std::vector<Element> elements;

 private:
  DataType type_;
  std::int64_t line_, matrix_;
};

struct Case {
  std::int64_t m, n, k, batch = 1, pad = 0, parts = 1;
  bool shares_a = false, has_none = false, has_large = false, is_sampled = false, has_infinity = false,
       has_huge = false;
  int span = 0;  // of the powers of two that rows of a are multiplied by, and columns of b
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
void check(const Case& one, const char* words, bool transposed, DataType type, std::int64_t columns, const Run& run,
           bool of_six = false) {
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
  for (std::int64_t i = 0; one.span > 0 && i < one.batch; ++i)
    for (std::int64_t t = 0; t < one.k; ++t) {
      const auto scale = [&](auto& of, std::size_t at, std::int64_t line, std::int64_t lines) {
        const int exponent = static_cast<int>(line * one.span / (lines - 1)) - one.span / 2;
        of.put(of.elements[at],
               std::ldexp(load_element(type, reinterpret_cast<const std::byte*>(&of.elements[at])), exponent));
      };
      for (std::int64_t row = 0; row < one.m; ++row) scale(a, a.place(i, row, t), row, one.m);
      for (std::int64_t column = 0; column < one.n; ++column) scale(b, b.place(i, t, column), column, one.n);
    }
  if (one.has_large) a.put(a.elements[a.place(0, 1, 30)], 0x1p18f), b.put(b.elements[b.place(0, 7, 1)], -0x1p17f);
  if (one.has_infinity) a.put(a.elements[a.place(0, 0, 0)], -std::numeric_limits<float>::infinity());
  // A sum of infinity, which is none where infinities of products are added; the other sums have no part in it.
  for (int k = 30; one.has_huge && k < 33; ++k) {
    for (int i = 0; i < one.m; ++i) a.put(a.elements[a.place(0, i, k)], i == 1 ? 0x1p127f : 0.0f);
    for (int i = 0; i < one.n; ++i) b.put(b.elements[b.place(0, k, i)], i != 7 ? 0.0f : k == 31 ? -0x1p100f : 0x1p100f);
  }
  Stored<float> c(DataType::f32, one.batch, one.m, one.n, task.ldc, task.batch_c, 4);
  const Stored<float> before = c;
  Memory memory{reinterpret_cast<decltype(Memory::a)>(a.elements.data()),
                reinterpret_cast<decltype(Memory::b)>(b.elements.data()),
                reinterpret_cast<decltype(Memory::bias)>(bias.elements.data()),
                reinterpret_cast<decltype(Memory::c)>(c.elements.data())};
  run(product, 2.0f, has_quads(product.a), has_quads(product.b), memory);
  // What lies between lines is not looked at.
  if (type == DataType::f32 && !one.has_none && !one.is_sampled) {
    EXPECT_EQ(memory.largest[0], std::bit_cast<uint>(a.largest()));
    EXPECT_EQ(memory.largest[1], std::bit_cast<uint>(b.largest()));
  }
  if (of_six && !one.has_none) {
    EXPECT_EQ(memory.largest[2], 0 - std::bit_cast<uint>(a.smallest()));
    EXPECT_EQ(memory.largest[3], 0 - std::bit_cast<uint>(b.smallest()));
  }
  EXPECT_EQ(memory.are_parts, size_of(type) < 4 || (!one.has_none && one.span <= 95));
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
    {.m = 33, .n = 33, .k = 1},
    {.m = 49, .n = 33, .k = 129},
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
    check<six_nn::Memory, float>(one, "f32 nn", false, DataType::f32, 64, six_nn::run, true);
    check<six_tt::Memory, float>(one, "f32 tt", true, DataType::f32, 64, six_tt::run, true);
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

// Numbers of 16 bits have no scale: a tile, or a sum of parts, of which one is no number.
TEST(SplitMatrices, ComputesPlainlyWhatIsNoNumber) {
  for (const std::int64_t parts : {1, 2})
    for (const bool pads : {false, true}) {
      const std::int64_t pad = pads ? 3 : 0;
      check<bf16_nn::Memory, std::uint16_t>(
          {.m = 140, .n = 150, .k = 129, .pad = pad, .parts = parts, .has_none = true}, "bf16 nn", false,
          DataType::bf16, 128, bf16_nn::run);
      check<bf16_tt::Memory, std::uint16_t>(
          {.m = 130, .n = 40, .k = 129, .batch = 2, .pad = pad, .parts = parts, .has_infinity = true}, "bf16 tt", true,
          DataType::bf16, 32, bf16_tt::run);
      check<bf16_nn::Memory, std::uint16_t>({.m = 20, .n = 70, .k = 129, .pad = pad, .parts = parts, .has_huge = true},
                                            "bf16 nn", false, DataType::bf16, 128, bf16_nn::run);
    }
}

// Numbers down to 2^-96 of the largest keep all their bits in parts of bf16; beyond that, and where a number is none,
// all is computed by the definition.
TEST(SplitMatrices, PartsOfBf16ReachFar) {
  for (const int span : {1, 90, 95, 96, 120})
    check<six_nn::Memory, float>({.m = 70, .n = 66, .k = 129, .batch = 2, .pad = 1, .span = span}, "f32 nn", false,
                                 DataType::f32, 64, six_nn::run, true);
  check<six_nn::Memory, float>({.m = 17, .n = 33, .k = 129, .has_none = true}, "f32 nn", false, DataType::f32, 64,
                               six_nn::run, true);
}

// One product of no more than 23 bits, whichever factor has how many of them.
TEST(SplitMatrices, PartsOfBf16MakeExactProducts) {
  MatrixTask host = std::get<MatrixTask>(matrix_task(task_of({.m = 8, .n = 40, .k = 1}, "f32 nn", false)));
  host.cut(64, 1);
  std::mt19937 random(1);
  const auto of_bits = [&](int bits) {
    const float value = static_cast<float>(random() >> (32 - bits) | 1U | 1U << (bits - 1));
    return std::ldexp(random() % 2 == 0 ? value : -value, static_cast<int>(random() % 40) - 20);
  };
  for (const auto& [of_a, of_b] :
       {std::pair(22, 1), std::pair(1, 22), std::pair(15, 8), std::pair(8, 15), std::pair(12, 11)})
    for (int times = 0; times < 4; ++times) {
      std::vector<float> a(8), b(40), bias(40), c(8 * 40);
      for (float& each : a) each = of_bits(of_a);
      for (float& each : b) each = of_bits(of_b);
      six_nn::Memory memory{reinterpret_cast<const uint*>(a.data()), reinterpret_cast<const uint*>(b.data()),
                            reinterpret_cast<const uint*>(bias.data()), reinterpret_cast<uint*>(c.data())};
      six_nn::run(host, 1.0f, false, false, memory);
      for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], double{a[i / 40]} * b[i % 40]);
    }
}

// Any number is the sum of its parts, which are as small as the bound takes them to be, and as large as products need.
TEST(SplitMatrices, PartsOfBf16AreTheNumber) {
  std::mt19937 random(2);
  for (const int top : {-149, -140, -126, -70, -66, -65, 0, 47, 60, 127}) {
    const float largest = std::ldexp(top == 127 ? 1.99f : 1.5f, top);
    six_nn::scaler_t scaler;
    scaler.scale = six_nn::scale_for(std::bit_cast<uint>(largest));
    const int e = six_nn::exponent_for(std::bit_cast<uint>(largest));
    EXPECT_EQ(std::ldexp(1.0, e), double{scaler.scale.first} * scaler.scale.second);
    for (int times = 0; times < 2000; ++times) {
      float values[8];
      ushort planes[3][8];
      for (float& value : values) {
        value = std::ldexp(static_cast<float>(random() >> 8 | 1U << 23), top - 23 - static_cast<int>(random() % 97));
        if (random() % 2 == 0) value = -value;
        if (random() % 16 == 0) value = 0;
      }
      values[0] = largest;
      six_nn::store_parts(values, scaler, planes[0], planes[1]);
      for (int i = 0; i < 8; ++i) {
        const double whole = std::ldexp(double{values[i]}, e), high = widened(DataType::bf16, planes[0][i]),
                     middle = widened(DataType::bf16, planes[1][i]), low = widened(DataType::bf16, planes[2][i]);
        ASSERT_EQ(high + middle + low, whole) << values[i];
        ASSERT_LE(std::fabs(high), std::fabs(whole) * (1 + 0x1p-8));
        ASSERT_LE(std::fabs(middle), std::fabs(whole) * 0x1p-8);
        ASSERT_LE(std::fabs(low), std::fabs(whole) * 0x1p-17);
        ASSERT_LE(std::fabs(whole), 0x1p48);
        for (const double part : {high, middle, low}) ASSERT_TRUE(part == 0 || std::fabs(part) >= 0x1p-72) << part;
      }
    }
  }
}

// Sums of any scales are scaled back as if at once.
TEST(SplitMatrices, SumsOfBf16PartsAreScaledBack) {
  std::mt19937 random(3);
  std::uniform_int_distribution<int> of_sums(-128, 127);
  const auto exponent = [&] {  // of the largest of an array: every fourth below the normal numbers
    const uint magnitude = static_cast<uint>(random() % 0x7f800000);
    return six_nn::exponent_for(random() % 4 == 0 ? 1U << magnitude % 23 : magnitude);
  };
  for (int times = 0; times < 200000; ++times) {
    const int e = exponent() + exponent();
    const float sum = std::ldexp(1 + static_cast<float>(random() >> 9) * 0x1p-23f, of_sums(random));
    const six_nn::scale_t back = six_nn::scale_back(-e);
    ASSERT_EQ(six_nn::scaled_back(sum, back), static_cast<float>(std::ldexp(double{sum}, -e))) << sum << ' ' << e;
  }
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

// c is stored by copies where these write nothing between its rows.
TEST(SplitMatrices, CopiesStoreWholeRowsAlone) {
  const auto has_boxes = [](const Case& one) {
    return map_of_output(std::get<MatrixTask>(matrix_task(task_of(one, "f32 nn", false))), DataType::f32,
                         {.columns = 64})
        .has_value();
  };
  EXPECT_TRUE(has_boxes({.m = 20, .n = 256, .k = 64}));
  EXPECT_TRUE(has_boxes({.m = 20, .n = 256, .k = 64, .pad = 4}));
  EXPECT_FALSE(has_boxes({.m = 20, .n = 257, .k = 64}));
  EXPECT_FALSE(has_boxes({.m = 20, .n = 257, .k = 64, .pad = 3}));
}

// Rows that lie side by side stay so: a copied line has all rows of a term. But for those of fp32 that are few.
TEST(SplitMatrices, RowsThatLieSideBySideStaySo) {
  for (const char* const words : {"bf16 tn", "f32 tn"})
    for (const std::int64_t n : {24, 40}) {
      const GemmTask task = task_of({.m = n, .n = n, .k = 70}, words, true);
      const bool are_few = words[0] == 'f' && n == 24;
      EXPECT_EQ(is_turned(task.problem, false), !are_few);
      EXPECT_EQ(is_turned(task.problem, true), !are_few);
      const MatrixTask made = std::get<MatrixTask>(matrix_task(task));
      EXPECT_EQ(made.a.lines, are_few ? n : 70);
      EXPECT_EQ(made.a.length, are_few ? 70 : n);
      EXPECT_EQ(made.b.lines, are_few ? n : 70);
      EXPECT_EQ(box_lines(task.problem, true, 32), are_few ? 32 : 64);
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
