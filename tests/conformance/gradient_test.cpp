// Magnitudes of pairs of kernels: every CPU solver x type x border x channels, pairs of every form, and the rounding of
// roots over all sums that it can meet.
#include <fmt/format.h>
#include <hwy/targets.h>

#include <cmath>

#include "../error_testing.h"
#include "cpu_testing.h"
#include "operations/filter2d/vector/gradient.h"
#include "operations/filter2d/vector/gradient_tiles.h"

namespace omniconv {
namespace {

const char* const pairs[] = {"sobel", "prewitt", "scharr"};

// A pair of kernels of the kinds that problems name.
Filter pair_of(const Filter2dProblem& problem, const char* x, const char* y) {
  Filter2dProblem kernel = problem;
  kernel.kernel = x;
  Filter filter{.weights = kernel_for(kernel, 1).weights};
  kernel.kernel = y;
  filter.second_weights = kernel_for(kernel, 2).weights;
  return filter;
}

class EveryGradient : public testing::TestWithParam<const char*> {};

TEST_P(EveryGradient, BordersAndChannels) {
  for (const char* border : borders)
    for (const int c : {1, 2, 3, 4, 5})
      for (const char* pair : pairs)
        expect_conformance(cpu(), fmt::format("filter2d {} h19w23c{}r3s3 {} kernel:{}", GetParam(), c, border, pair));
}

// Also where the two are of different form, and along rows first.
TEST_P(EveryGradient, PairsOfEveryForm) {
  for (const char* size : {"r1s1", "r1s4", "r3s5", "r4s3", "r9s8"}) {
    const bool has_factors = size[1] != '1';
    const auto problem =
        get<Filter2dProblem>(parse_problem(fmt::format("filter2d {} h21w30c3{} reflect101", GetParam(), size)));
    for (const char* x : {"random", "integer", "rank1", "equal"})
      for (const char* y : {"random", "integer", "rank1", "equal"}) {
        if (!has_factors && (x == std::string_view("rank1") || y == std::string_view("rank1"))) continue;
        expect_conformance(cpu(), problem, pair_of(problem, x, y));
      }
  }
}

TEST_P(EveryGradient, KernelsLargerThanTheImage) {
  for (const char* border : borders) {
    if (std::string_view(border) == "valid") continue;  // no whole window, refused by the problem
    for (const char* size : {"h1w1", "h1w7", "h2w1", "h3w2"}) {
      expect_conformance(cpu(), fmt::format("filter2d {} {}c2r3s3 {} kernel:sobel", GetParam(), size, border));
      const auto problem =
          get<Filter2dProblem>(parse_problem(fmt::format("filter2d {} {}c2r9s11 {}", GetParam(), size, border)));
      expect_conformance(cpu(), problem, pair_of(problem, "rank1", "integer"));
    }
  }
}

TEST_P(EveryGradient, AnchorsScaleBiasFlipStrips) {
  auto problem =
      get<Filter2dProblem>(parse_problem(fmt::format("filter2d {} h17w18c3r3s3 reflect kernel:scharr", GetParam())));
  for (const bool flip : {false, true})
    for (const std::int64_t y : {0, 1, 2})
      for (const std::int64_t x : {0, 2}) {
        problem.flip = flip;
        Filter filter = filter_for(problem);
        filter.anchor_y = y;
        filter.anchor_x = x;
        expect_conformance(cpu(), problem, filter);
        filter.scale = 0.037;
        filter.bias = 11.25;
        expect_conformance(cpu(), problem, filter, {.strip_rows = 4});
        filter.scale = -0.25;
        filter.bias = 255;
        expect_conformance(cpu(), problem, filter, {.strip_rows = 5});
      }
}

// Vector bodies, tails of every length, chunks and their seams.
TEST_P(EveryGradient, WideRows) {
  for (int w = 200; w < 233; ++w)
    expect_conformance(cpu(), fmt::format("filter2d {} h5w{}c1r3s3 kernel:sobel", GetParam(), w));
  for (const char* border : borders)
    expect_conformance(cpu(), fmt::format("filter2d {} h9w9001c3r3s3 {} kernel:scharr", GetParam(), border),
                       {.sampled = true});
  expect_conformance(cpu(), fmt::format("filter2d {} h4w40c1000r3s3 kernel:sobel", GetParam()), {.sampled = true});
}

INSTANTIATE_TEST_SUITE_P(
    Gradient, EveryGradient,
    testing::ValuesIn(types_to_check({"u8",      "u16",     "s16",    "s32",     "f16",    "f32",     "f64",
                                      "u8>f32",  "u8>s16",  "u16>u8", "f32>u8",  "u8>u16", "f16>f32", "f32>f16",
                                      "s16>f64", "f32>f64", "f64>u8", "f64>f16", "u8>s32", "u8>f16",  "u8>f64"})),
    [](const auto& type) {
      std::string name = type.param;
      std::replace(name.begin(), name.end(), '>', '_');
      return name;
    });

TEST(Gradient, ProblemList) {
  for (const Filter2dProblem& problem : shrunk_problems("gradients.txt"))
    expect_conformance(cpu(), problem, filter_for(problem));
}

// Past the caches where rows begin on cache lines, and where they do not.
TEST(Gradient, LargeResults) {
  for (const char* text :
       {"filter2d f32 h900w1600c3r3s3 kernel:sobel", "filter2d u8>f32 h900w1600c3r3s3 kernel:sobel",
        "filter2d u8>f32 h900w1601c3r3s3 wrap kernel:sobel", "filter2d u8 h2400w2401c3r3s3 kernel:scharr"})
    expect_conformance(cpu(), text, {.sampled = true, .samples = 20000});
}

// Only the gradient solvers and the references take a pair, and only they refuse nothing else.
TEST(Gradient, OtherSolversRefuseAPair) {
  const auto served = [&](const char* text) {
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    std::string ids;
    for (const Candidate& candidate : explain(cpu(), problem, filter_for(problem))) {
      if (candidate.applicable) ids += candidate.solver + " ";
      if (candidate.solver == "filter2d/direct/cpu.1" || candidate.solver == "filter2d/separable/cpu.1") {
        EXPECT_EQ(candidate.reason == "the result is the magnitude of a pair of kernels, and this filters by one",
                  problem.kernel == "sobel")
            << candidate.solver << ": " << candidate.reason;
      }
      if (candidate.solver == "filter2d/gradient/cpu.1" && !candidate.applicable) {
        EXPECT_EQ(candidate.reason, "the filter is one kernel, and this serves the magnitude of a pair");
      }
    }
    return ids;
  };
  EXPECT_EQ(served("filter2d u8 h9w9r3s3 kernel:sobel"), "filter2d/gradient/cpu.1 filter2d/definition/cpu.1 ");
  EXPECT_EQ(served("filter2d f32 h9w9r3s3 kernel:sobel"),
            "filter2d/gradient/cpu.1 filter2d/definition/cpu.1 filter2d/double/cpu.1 ");
  EXPECT_EQ(served("filter2d u8 h9w9r3s3 kernel:sobel-x").find("gradient"), std::string::npos);
}

TEST(Gradient, BadPairsAreRefused) {
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d u8 h8w8r1s3"));
  const auto message = [&](std::vector<double> second) {
    return outcome_of([&] {
      Filter2dPlan(cpu(), problem, {.weights = {1, 2, 3}, .second_weights = std::move(second)});
    });
  };
  EXPECT_EQ(message({1, 2}), "the filter has 2 second weights: r1s3 needs 3");
  EXPECT_EQ(message({0, 0, 0}),
            "all second weights are zero: the result would hold nothing of the image; give at least one other weight");
  EXPECT_NE(message({1, NAN, 0}).find("the second weight in row 1, column 2 (nan)"), std::string::npos);
  EXPECT_EQ(message({1, 0, -1}), "nothing was thrown");
}

// The loops for central differences of bytes serve what they are for, and nothing else.
TEST(Gradient, CentralDifferencesAreFound) {
  const auto found = [](const char* type, Filter filter) {
    const auto problem = get<Filter2dProblem>(parse_problem(fmt::format("filter2d {} h8w8r3s3", type)));
    return kernels::difference_pair(task_for(problem, filter));
  };
  const Filter sobel{.weights = {-1, 0, 1, -2, 0, 2, -1, 0, 1}, .second_weights = {-1, -2, -1, 0, 0, 0, 1, 2, 1}};
  ASSERT_TRUE(found("u8", sobel));
  EXPECT_EQ(found("u8", sobel)->x.middle, 2);
  EXPECT_FALSE(found("u16", sobel));
  const Filter uneven{.weights = {3, 0, -3, 7, 0, -7, 3, 0, -3}, .second_weights = {2, 2, 2, 0, 0, 0, -2, -2, -2}};
  ASSERT_TRUE(found("u8", uneven));
  EXPECT_EQ(std::abs(found("u8", uneven)->x.middle), 7);
  EXPECT_EQ(std::abs(found("u8", uneven)->y.outer), 2);
  Filter other = sobel;
  other.weights[0] = -2;
  EXPECT_FALSE(found("u8", other));  // not of rank one
  EXPECT_TRUE(found("u8>f32", sobel));
  EXPECT_FALSE(found("u8>f32", uneven));  // 3 / 7 is no float, and the promised sums deviate from the integers
  other = uneven;
  other.scale = 0.5;
  EXPECT_FALSE(found("u8", other));
  other = sobel;
  std::swap(other.weights, other.second_weights);
  EXPECT_FALSE(found("u8", other));  // y first
  other = sobel;
  for (double& w : other.weights) w *= 0.5;
  EXPECT_FALSE(found("u8", other));  // no integers
  other = sobel;
  for (double& w : other.weights) w *= 5;
  EXPECT_FALSE(found("u8", other));  // 20 * 255 is more than 4096
  for (const Filter& filter : {sobel, uneven}) {
    const auto problem = get<Filter2dProblem>(parse_problem("filter2d u8 h31w61c3r3s3 wrap"));
    expect_conformance(cpu(), problem, filter);
  }
}

// The promised sums of Scharr's x deviate from integers, and bytes must not show it: the sums of all pixels that differ
// along the rows only, with every value that may stand in the other sum beside the halves between bytes.
TEST(Gradient, DeviatingSumsRoundToTheSameBytes) {
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d u8 h8w8r3s3 kernel:scharr"));
  const Weights x = task_for(problem, filter_for(problem)).weights;
  ASSERT_EQ(x.form, WeightForm::rank_one);
  ASSERT_FALSE(x.exact);
  const auto next = [&x](std::size_t i, int difference, float sum) {
    return std::fma(static_cast<float>(x.column[i]), static_cast<float>(x.row[2]) * static_cast<float>(difference),
                    sum);
  };
  double largest = 0;
  for (int a = -255; a <= 255; ++a) {
    const float one = next(0, a, 0);
    for (int b = -255; b <= 255; ++b) {
      const float two = next(1, b, one);
      for (int c = -255; c <= 255; ++c) {
        const double sum = std::fabs(next(2, c, two));
        largest = std::max(largest, std::fabs(sum - std::abs(3 * a + 10 * b + 3 * c)));
      }
    }
  }
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest + 3 * 256 * 0x1p-24, 0.25 / 512);
}

// All sums from -4096 to 4096 of one kernel, with all up to 300 of the other and some beyond (where every magnitude is
// more than 255, as it is for the first from 256 on), on every instruction set: the rounded
// root of a sum of squares, by whatever way the set takes, is the correctly rounded root rounded to an integer.
TEST(Gradient, RoundedRootsOfAllSums) {
  constexpr int most = kernels::largest_exact_sum;
  constexpr std::int64_t count = 2 * most + 1;
  std::vector<std::int16_t> gx(count + kernels::difference_slack), gy(count + kernels::difference_slack);
  for (std::int64_t i = 0; i < count; ++i) gx[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(i - most);
  std::vector<std::uint8_t> found(static_cast<std::size_t>(count)), expected(found.size());
  for (int y = 0; y <= most; y += y >= 300 ? 73 : instrumented ? 7 : 1) {
    std::fill(gy.begin(), gy.end(), static_cast<std::int16_t>(y));
    for (std::int64_t i = 0; i < count; ++i) {
      const auto x = static_cast<float>(i - most), real_y = static_cast<float>(y);
      const float root = std::sqrt(std::fma(x, x, real_y * real_y));
      expected[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(std::min(std::nearbyint(root), 255.0f));
    }
    for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
      if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;  // not there
      hwy::GetChosenTarget().Update(target);
      kernels::rounded_magnitudes(gx.data(), gy.data(), count, found.data());
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      ASSERT_EQ(found, expected) << "gy = " << y << " on " << hwy::TargetName(target);
    }
  }
}

}  // namespace
}  // namespace omniconv
