// Winograd's filtering: its matrices in rational numbers, its bound, what it serves and in what forms.
#include "operations/conv2d/winograd/winograd.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "../error_testing.h"
#include "conv2d_testing.h"
#include "omniconv/plan.h"
#include "vector/matrix/gemm_tiles.h"

namespace omniconv {
namespace {

using operations::winograd_matrices;

constexpr const char* id = "conv2d/winograd/cpu.1";

Context cpu(int threads = 2) {
  return Context({.device = "cpu", .threads = threads});
}

// An exact fraction; what is made of the few numbers here stays far below 2^63.
struct Rational {
  std::int64_t over, under;

  Rational(std::int64_t number = 0, std::int64_t divisor = 1) : over(number), under(divisor) {
    const std::int64_t common = std::gcd(over, under) * (under < 0 ? -1 : 1);
    over /= common, under /= common;
  }
  // Of a number of few binary digits.
  static Rational of(double value) {
    constexpr std::int64_t digits = 1 << 20;
    const double scaled = value * static_cast<double>(digits);
    EXPECT_EQ(scaled, std::round(scaled)) << value;
    return {static_cast<std::int64_t>(scaled), digits};
  }
  friend Rational operator+(Rational a, Rational b) { return {a.over * b.under + b.over * a.under, a.under * b.under}; }
  friend Rational operator*(Rational a, Rational b) { return {a.over * b.over, a.under * b.under}; }
  friend Rational operator/(Rational a, Rational b) { return {a.over * b.under, a.under * b.over}; }
  friend bool operator==(Rational a, Rational b) = default;
  Rational magnitude() const { return {std::abs(over), under}; }
  double value() const { return static_cast<double>(over) / static_cast<double>(under); }
};

// The trilinear form: the product of tap j and input l enters output i once where l = i + j, and nowhere else.
template <int outputs, int taps>
void expect_identity() {
  constexpr auto& m = winograd_matrices<outputs, taps>;
  for (std::size_t i = 0; i < outputs; ++i)
    for (std::size_t j = 0; j < taps; ++j)
      for (std::size_t l = 0; l < m.points; ++l) {
        Rational sum;
        for (std::size_t e = 0; e < m.points; ++e)
          sum = sum + Rational::of(m.output[i][e]) * Rational::of(m.powers[e][j]) * Rational::of(m.input[e][l]) /
                          Rational::of(m.divisors[e]);
        EXPECT_EQ(sum, Rational(l == i + j ? 1 : 0)) << outputs << ", " << taps << ": " << i << ", " << j << ", " << l;
      }
}

// Rows of a point and its negative differ in the signs of odd columns, on which the transforms rely.
template <int outputs, int taps>
void expect_pairs() {
  constexpr auto& m = winograd_matrices<outputs, taps>;
  for (std::size_t e = 1; e + 1 < m.points; e += 2) {
    for (std::size_t l = 0; l < m.points; ++l) EXPECT_EQ(m.input[e + 1][l], (l % 2 == 0 ? 1 : -1) * m.input[e][l]);
    for (std::size_t j = 0; j < taps; ++j) EXPECT_EQ(m.filter[e + 1][j], (j % 2 == 0 ? 1 : -1) * m.filter[e][j]);
    for (std::size_t i = 0; i < outputs; ++i) EXPECT_EQ(m.output[i][e + 1], (i % 2 == 0 ? 1 : -1) * m.output[i][e]);
  }
  for (std::size_t l = 0; l < m.points; ++l) {
    EXPECT_EQ(m.input[l % 2 == 1 ? 0 : m.points - 1][l], 0);
    for (std::size_t e = 0; e < m.points; ++e)
      EXPECT_EQ(static_cast<double>(static_cast<float>(m.input[e][l])), m.input[e][l]);
  }
}

// The largest, over outputs i and taps j, of the sum over points of |output * filter| times the sum of |input|.
template <int outputs, int taps>
double amplification() {
  constexpr auto& m = winograd_matrices<outputs, taps>;
  double largest = 0;
  for (std::size_t i = 0; i < outputs; ++i)
    for (std::size_t j = 0; j < taps; ++j) {
      Rational sum;
      for (std::size_t e = 0; e < m.points; ++e) {
        Rational inputs;
        for (std::size_t l = 0; l < m.points; ++l) inputs = inputs + Rational::of(m.input[e][l]).magnitude();
        sum = sum +
              (Rational::of(m.output[i][e]) * Rational::of(m.powers[e][j]) / Rational::of(m.divisors[e])).magnitude() *
                  inputs;
      }
      largest = std::max(largest, (sum * sum).value());
    }
  return largest;
}

TEST(Winograd, MatricesAreExact) {
  expect_identity<2, 3>(), expect_identity<4, 3>(), expect_identity<2, 5>();
  expect_identity<3, 2>(), expect_identity<3, 4>();
  expect_pairs<2, 3>(), expect_pairs<4, 3>(), expect_pairs<2, 5>();
  expect_pairs<3, 2>(), expect_pairs<3, 4>();
}

TEST(Winograd, AmplificationIsThatOfTheMatrices) {
  EXPECT_EQ((amplification<2, 3>()), 16);
  EXPECT_EQ((amplification<4, 3>()), 210.25);
  EXPECT_EQ((amplification<2, 5>()), 210.25);
  EXPECT_EQ((amplification<3, 2>()), 16);
  EXPECT_EQ((amplification<3, 4>()), 210.25);
  EXPECT_NEAR(operations::winograd_error({2, 3}).amplification, 16, 1e-9);
  EXPECT_NEAR(operations::winograd_error({4, 3}).amplification, 210.25, 1e-9);
  EXPECT_NEAR(operations::winograd_error({2, 5}).amplification, 210.25, 1e-9);
  EXPECT_NEAR(operations::winograd_error({3, 2}).amplification, 16, 1e-9);
  EXPECT_NEAR(operations::winograd_error({3, 4}).amplification, 210.25, 1e-9);
  EXPECT_NEAR(operations::winograd_error({2, 3}).integer_scale, 64, 1e-9);
  EXPECT_NEAR(operations::winograd_error({3, 2}).integer_scale, 64, 1e-9);
  EXPECT_EQ(operations::winograd_error({4, 3}).integer_scale, 0);
  EXPECT_EQ(operations::winograd_error({3, 4}).integer_scale, 0);
}

Candidate explained(const std::string& text, const SolverOptions& options = {.solver = id}) {
  for (const Candidate& candidate : explain(cpu(), parse_problem(text), options))
    if (candidate.solver == id) return candidate;
  throw bad_input("not among the candidates");
}
std::string refusal(const std::string& text, const SolverOptions& options = {.solver = id}) {
  const Candidate candidate = explained(text, options);
  EXPECT_FALSE(candidate.applicable) << text;
  return candidate.reason;
}

TEST(Winograd, RefusesWhatItDoesNotServe) {
  const auto expect = [](const std::string& reason, const char* part) {
    EXPECT_NE(reason.find(part), std::string::npos) << reason;
  };
  expect(refusal("n1c4h9w9k4r3s3p1u2"), "strides of 1");
  expect(refusal("n1c4h9w9k4r3s3p1uw2"), "strides of 1");
  expect(refusal("n1c4h9w9k4r3s3p1d2"), "without dilation");
  expect(refusal("n1c4h9w9k4r1s1"), "3 x 3 and 5 x 5");
  expect(refusal("n1c4h9w9k4r3s5"), "3 x 3 and 5 x 5");
  expect(refusal("f16 n1c4h9w9k4r3s3"), "f32, tf32 and f64");
  expect(refusal("bwd_filter n1c4h9w9k4r5s5"), "bwd_filter of 3 x 3");
  expect(refusal("bwd_filter n1c4h9w9k4r3s3", {.solver = id, .relative_error = true}), "not an element's own terms");
  expect(refusal("n1c4h9w9k4r3s3", {.solver = id, .relative_error = true}), "not an element's own terms");
  expect(refusal("n1c4h9w9k4r3s3", {.solver = id, .prepared = {"x"}}), "of w alone");
  expect(refusal("n1c4h9w9k4r5s5", {.solver = id, .tuning = "tile=4 tiles=64 steps=128"}), "tiles of 2");
}

// The tile's amplification is what max_error limits: the smaller tile is taken below that of the larger, none below its
// own.
TEST(Winograd, MaxErrorLimitsTheTile) {
  const auto bound = [](double most) {
    return explained("n4c64h56w56k64r3s3p1", {.solver = id, .max_error = most}).bound;
  };
  EXPECT_TRUE(bound(1024).starts_with("210.25 * (64/2 + ")) << bound(1024);
  EXPECT_TRUE(bound(211).starts_with("210.25 * (64/2 + ")) << bound(211);
  EXPECT_TRUE(bound(210).starts_with("16 * (64/2 + ")) << bound(210);
  EXPECT_TRUE(bound(16).starts_with("16 * (64/2 + ")) << bound(16);
  const std::string reason = refusal("n4c64h56w56k64r3s3p1", {.solver = id, .max_error = 15.9});
  EXPECT_NE(reason.find("amplified 16 times, and max_error is 15.9"), std::string::npos) << reason;
  EXPECT_NE(refusal("n4c64h56w56k64r5s5p2", {.solver = id, .max_error = 210}).find("amplified 210.25 times"),
            std::string::npos);
}

// Of small integers F(2x2, 3x3) is exact, since its fractions are quarters; the others keep to their bound.
TEST(Winograd, IsExactOrWithinItsBound) {
  for (const char* geometry :
       {"n1c1h1w1k1r3s3p1", "n1c1h3w3k1r3s3", "n2c3h5w7k4r3s3p1", "n3c5h17w13k7r3s3pt2pb1pl0pr1", "n2c17h8w8k31r3s3p1",
        "n2c6h19w23k9r3s3p1g3", "n1c4h40w70k33r3s3p2", "n5c33h7w7k20r3s3p1", "n1c2h6w130k3r3s3p3", "n2c4h9w9k4r3s3p1g4",
        "n9c2h2w2k2r3s3p1", "n1c3h12w66k5r5s5p2", "n3c18h9w10k35r5s5pt4pb0pl1pr3g1", "n1c2h5w5k2r5s5"})
    for (const char* words : {"", "flip bias relu acc", "bwd_data", "bwd_data flip acc"})
      for (const char* layout : {"nchw", "nhwc"})
        for (const int tile : {4, 2}) {
          const std::string text = fmt::format("{} {} {}", words, layout, geometry);
          if (tile == 4 && text.find("r5") != std::string::npos) continue;
          const std::string tuning = fmt::format("tile={} tiles=32 steps=512", tile);
          expect_exact_and_bounded(cpu(), conv2d_problem(text), {.solver = {.solver = id, .tuning = tuning}});
        }
}

TEST(Winograd, OfF64AndTf32) {
  for (const char* text : {"f64 n2c9h11w21k18r3s3p1", "tf32 n2c9h11w21k18r3s3p1",
                           "f64 nhwc bwd_data n2c9h11w21k18r3s3p1", "f64 bias relu acc n1c20h9w9k17r5s5p2"})
    expect_exact_and_bounded(cpu(), conv2d_problem(text), {.solver = {.solver = id}});
}

// Channels that are added up in parts, filters and tiles in several blocks.
TEST(Winograd, TuningsServe) {
  for (const char* text : {"n2c300h30w30k40r3s3p1", "nhwc n2c300h30w30k40r3s3p1", "bwd_data n1c40h33w9k300r3s3p1"})
    for (const char* tuning : {"tile=4 tiles=32 steps=128", "tile=2 tiles=64 steps=256", "tile=2 tiles=1024 steps=128"})
      expect_exact_and_bounded(cpu(), conv2d_problem(text),
                               {.solver = {.solver = id, .tuning = tuning}, .sampled = true, .samples = 2000});
}

// Few tiles: an item of work takes filters from taps to outputs, a run of channels at a time.
TEST(Winograd, FewTilesServe) {
  for (const char* text :
       {"n4c300h7w7k230r3s3p1", "nhwc bias relu acc n1c150h9w14k200r3s3p1", "f64 n1c140h5w6k110r5s5p2",
        "f64 n1c140h8w8k230r3s3p1", "bwd_data n1c480h9w14k300r3s3p1g2", "bwd_data nhwc flip n2c230h7w7k270r3s3p1",
        "n1c5h3w3k1r3s3p1", "bias relu acc n2c131h4w5k610r3s3p1"})
    for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
      if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
      hwy::GetChosenTarget().Update(target);
      expect_exact_and_bounded(cpu(3), conv2d_problem(text),
                               {.solver = {.solver = id}, .sampled = true, .samples = 1000});
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
}

TEST(Winograd, KeepsToWorkspaceLimits) {
  for (const char* text : {"n3c40h30w30k60r3s3p1", "nhwc n3c40h30w30k60r3s3p1", "bwd_data n2c16h20w20k8r5s5p2"}) {
    const auto bytes = [&](std::int64_t limit) {
      const auto all = explain(cpu(), parse_problem(text), {.solver = id, .max_workspace_bytes = limit});
      return all.front().workspace_bytes;
    };
    const std::int64_t whole = explained(text).workspace_bytes;
    std::int64_t smallest = whole;
    for (std::int64_t limit = whole; limit > 0; limit = limit * 3 / 4)
      if (explained(text, {.solver = id, .max_workspace_bytes = limit}).applicable) smallest = limit;
    EXPECT_LT(smallest, whole / 2) << text;
    for (const std::int64_t limit : {smallest, (smallest + whole) / 2, whole}) {
      EXPECT_LE(bytes(limit), limit) << text;
      expect_exact_and_bounded(
          cpu(), parse_problem(text),
          {.solver = {.solver = id, .max_workspace_bytes = limit}, .sampled = true, .samples = 1000});
    }
    EXPECT_FALSE(explained(text, {.solver = id, .max_workspace_bytes = 64}).applicable);
  }
}

std::vector<float> output_of(const Context& context, const Problem& problem, const SolverOptions& options) {
  const Plan plan(context, problem, options);
  Queue queue = context.make_queue();
  std::vector<NamedOperand> arrays;
  std::uint64_t seed = 1;
  for (const ArraySpec& array : plan.arrays()) {
    Buffer buffer = context.allocate(array.bytes());
    operations::fill_random(array.type, 0, seed++, {buffer.impl()->host(), static_cast<std::size_t>(array.bytes())});
    if (plan.format(array.name) != nullptr) {
      const Buffer prepared = context.allocate(plan.format(array.name)->bytes);
      plan.prepare(queue, array.name, {buffer}, prepared).wait();
      arrays.push_back({array.name, {prepared, 0, plan.format(array.name)}});
    } else {
      arrays.push_back({array.name, {buffer}});
    }
  }
  plan.run(queue, arrays, context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))).wait();
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (plan.arrays()[i].role == ArrayRole::out) {
      const auto* const from = reinterpret_cast<const float*>(arrays[i].operand.buffer.impl()->host());
      return {from, from + plan.arrays()[i].elements()};
    }
  return {};
}

// Neither threads nor blocks change a bit, nor do filters that come transformed.
TEST(Winograd, BitsAreOfTheProblemAlone) {
  for (const char* text : {"n3c20h21w30k40r3s3p1", "nhwc n3c20h21w30k40r3s3p1g2", "bwd_data n3c20h21w30k40r3s3p1g2",
                           "bwd_data nhwc n1c20h21w30k40r3s3p1", "n1c8h20w20k20r5s5p2"}) {
    const Problem problem = parse_problem(text);
    const std::vector<float> expected = output_of(cpu(), problem, {.solver = id});
    EXPECT_EQ(output_of(cpu(1), problem, {.solver = id}), expected) << text;
    EXPECT_EQ(output_of(cpu(), problem, {.solver = id, .prepared = {"w"}}), expected) << text;
    const std::int64_t bytes = explained(text).workspace_bytes;
    EXPECT_EQ(output_of(cpu(), problem, {.solver = id, .max_workspace_bytes = bytes - 1}), expected) << text;
  }
}

// Nor do they where items of work take filters from taps to outputs, several panels each for one thread, one for five,
// and none where a limit leaves no room; nor what form a limit lets a plan have.
TEST(Winograd, FewTilesKeepTheirBits) {
  for (const char* text : {"n4c140h7w7k330r3s3p1", "nhwc n4c140h7w7k660r3s3p1g2", "bwd_data n4c330h7w7k140r3s3p1",
                           "bwd_data nhwc n1c320h7w7k140r3s3p1"}) {
    const Problem problem = parse_problem(text);
    const auto needed = [&](int threads, const SolverOptions& options) {
      return explain(cpu(threads), problem, options).front();
    };
    for (const char* tuning : {"tile=4 tiles=1024 steps=128", "tile=4 tiles=1024 steps=512"}) {
      const SolverOptions options = {.solver = id, .tuning = tuning};
      const std::vector<float> expected = output_of(cpu(), problem, options);
      EXPECT_GT(needed(5, options).workspace_bytes, needed(2, options).workspace_bytes) << text << ": no items";
      EXPECT_EQ(output_of(cpu(1), problem, options), expected) << text;
      EXPECT_EQ(output_of(cpu(5), problem, options), expected) << text;
      EXPECT_EQ(output_of(cpu(), problem, {.solver = id, .tuning = tuning, .prepared = {"w"}}), expected) << text;
    }
    int limits = 0;
    for (std::int64_t limit = needed(5, {.solver = id}).workspace_bytes; limit > 0; limit = limit * 3 / 4) {
      const SolverOptions limited = {.solver = id, .max_workspace_bytes = limit};
      const bool is_served = needed(1, limited).applicable;
      std::vector<float> expected;
      for (const int threads : {1, 5, 16}) {
        ASSERT_EQ(needed(threads, limited).applicable, is_served) << text << " " << limit;
        if (!is_served) continue;
        EXPECT_LE(needed(threads, limited).workspace_bytes, limit) << text;
        const std::vector<float> found = output_of(cpu(threads), problem, limited);
        if (expected.empty()) expected = found;
        EXPECT_EQ(found, expected) << text << " " << limit;
      }
      limits += is_served ? 1 : 0;
    }
    EXPECT_GE(limits, 3) << text;
  }
}

// Nor do they where each thread takes a range of prepared filters, which begin and end within panels, with all inputs.
TEST(Winograd, RangesOfPreparedFiltersKeepTheirBits) {
  for (const char* text :
       {"bias relu n1c64h8w8k64r3s3p1", "acc n1c20h13w15k70r3s3p1g2", "bwd_data n2c70h7w7k33r3s3p1"}) {
    const Problem problem = parse_problem(text);
    const SolverOptions options = {.solver = id, .tuning = "tile=4 tiles=1024 steps=128", .prepared = {"w"}};
    const auto needed = [&](int threads, const SolverOptions& of) {
      return explain(cpu(threads), problem, of).front().workspace_bytes;
    };
    const std::vector<float> expected = output_of(cpu(1), problem, options);
    EXPECT_GT(needed(2, options), needed(1, options)) << text << ": no inputs of their own";
    for (const int threads : {2, 3, 5, 16}) EXPECT_EQ(output_of(cpu(threads), problem, options), expected) << text;
    SolverOptions limited = options;
    limited.max_workspace_bytes = needed(2, options) - 1;
    EXPECT_EQ(needed(2, limited), needed(1, options)) << text;
    EXPECT_EQ(output_of(cpu(2), problem, limited), expected) << text;
  }
}

// Tiles that one vector just holds; a limit cuts them into blocks where a vector holds more than a register tile has
// rows.
TEST(Winograd, BlocksOfFewTilesKeepTheirBits) {
  const kernels::RegisterTile tile = kernels::register_tile(DataType::f32, 512);
  const std::int64_t images = std::max<std::int64_t>(tile.lanes / 4, 1);  // of 2 x 2 tiles
  for (const std::string& text :
       {fmt::format("n{}c20h7w7k70r3s3p1", images), fmt::format("bwd_data acc n{}c70h7w7k20r3s3p1g2", images)}) {
    const Problem problem = parse_problem(text);
    const SolverOptions options = {.solver = id, .tuning = "tile=4 tiles=32 steps=128"};
    const std::vector<float> expected = output_of(cpu(), problem, options);
    std::set<std::int64_t> needed;
    for (std::int64_t limit = explained(text, options).workspace_bytes; limit > 0; limit = limit * 9 / 10) {
      SolverOptions limited = options;
      limited.max_workspace_bytes = limit;
      if (!explained(text, limited).applicable) break;
      needed.insert(explained(text, limited).workspace_bytes);
      EXPECT_EQ(output_of(cpu(), problem, limited), expected) << text << " " << limit;
    }
    // Without the items of filters, with fewer filters at once, and in blocks.
    EXPECT_GE(needed.size(), tile.lanes > tile.rows ? 3u : 2u) << text;
  }
}

TEST(Winograd, PreparedFiltersAreShared) {
  expect_filters_shared(cpu(), id, "tile=4 tiles=32 steps=512", "r3s3");
}

TEST(Winograd, PassesAreAdjoint) {
  for (const char* geometry :
       {"n2c5h9w11k7r3s3p1", "n1c4h12w6k6r3s3pt2pl1g2", "nhwc n2c5h9w11k7r3s3p1", "flip n1c3h8w8k5r3s3"})
    expect_adjoint(cpu(), conv2d_problem(geometry), id, 1, "tile=2 tiles=32 steps=512");
}

// A large input at a corner of a tile, which most outputs do not read, is what its bound's norm is there for.
TEST(Winograd, LargeInputsElsewhereInTheTile) {
  const Context context = cpu();
  Queue queue = context.make_queue();
  std::vector<float> x(64, 1.0f), w(9, 0.0f), y(36);
  x[0] = 0x1p20f;
  w[8] = 1;  // no output reads x[0]
  const Conv2dPlan plan(context, conv2d_problem("n1c1h8w8k1r3s3"),
                        {.solver = id, .tuning = "tile=4 tiles=32 steps=512"});
  plan.run(queue, {.x = {context.borrow(std::span(x))},
                   .w = {context.borrow(std::span(w))},
                   .y = {context.borrow(std::span(y))},
                   .workspace = context.allocate(plan.workspace_bytes())})
      .wait();
  const operations::WinogradError error = operations::winograd_error({4, 3});
  const double bound = error.amplification * (0.5 + error.roundings / 2 + 2) * 0x1p-23 * 0x1p20;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool beside = i / 6 < 4 && i % 6 < 4;
    EXPECT_NEAR(y[i], 1, beside ? bound : bound * 0x1p-20) << i;
  }
}

}  // namespace
}  // namespace omniconv
