#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "kernel_testing.h"
#include "operations/filter2d/weights.h"

namespace omniconv::image {
namespace {

Filter2dProblem problem_of(std::int64_t r, std::int64_t s, std::string kernel) {
  Filter2dProblem problem;
  problem.h = problem.w = 64;
  problem.r = r;
  problem.s = s;
  problem.kernel = std::move(kernel);
  return problem;
}

WeightForm form_of(const Filter2dProblem& problem, const Kernel& kernel) {
  Filter filter;
  filter.weights = kernel.weights;
  return analyse(problem, filter).form;
}

// Rank by elimination with full pivoting in long double; pivots below 1e-9 of the first count as zero.
std::int64_t rank_of(const Kernel& kernel) {
  std::vector<long double> a(kernel.weights.begin(), kernel.weights.end());
  const auto entry = [&](std::int64_t i, std::int64_t j) -> long double& {
    return a[static_cast<std::size_t>(i * kernel.s + j)];
  };
  long double first = 0;
  for (std::int64_t rank = 0; rank < std::min(kernel.r, kernel.s); ++rank) {
    std::int64_t pi = rank, pj = rank;
    for (std::int64_t i = rank; i < kernel.r; ++i)
      for (std::int64_t j = rank; j < kernel.s; ++j)
        if (std::abs(entry(i, j)) > std::abs(entry(pi, pj))) pi = i, pj = j;
    if (rank == 0) first = std::abs(entry(pi, pj));
    if (std::abs(entry(pi, pj)) <= 1e-9L * first) return rank;
    for (std::int64_t j = 0; j < kernel.s; ++j) std::swap(entry(pi, j), entry(rank, j));
    for (std::int64_t i = 0; i < kernel.r; ++i) std::swap(entry(i, pj), entry(i, rank));
    for (std::int64_t i = rank + 1; i < kernel.r; ++i) {
      const long double factor = entry(i, rank) / entry(rank, rank);
      for (std::int64_t j = rank; j < kernel.s; ++j) entry(i, j) -= factor * entry(rank, j);
    }
  }
  return std::min(kernel.r, kernel.s);
}

constexpr std::pair<std::int64_t, std::int64_t> extents[] = {{1, 1}, {1, 2}, {2, 1},   {1, 7},   {2, 2},   {2, 3},
                                                             {3, 3}, {3, 5}, {15, 15}, {31, 31}, {64, 64}, {9, 70}};

TEST(ProblemKernels, RandomIsFullRankAndMixed) {
  for (const auto& [r, s] : extents)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Filter2dProblem problem = problem_of(r, s, "random");
      const Kernel kernel = kernel_for(problem, seed);
      ASSERT_EQ(std::ssize(kernel.weights), r * s);
      EXPECT_EQ(rank_of(kernel), std::min(r, s));
      EXPECT_NEAR(magnitudes(kernel), 0.9, sum_rounding(kernel));
      for (const double weight : kernel.weights) EXPECT_NE(weight, std::nearbyint(weight));
      if (r * s > 1) {
        EXPECT_LT(*std::min_element(kernel.weights.begin(), kernel.weights.end()), 0);
        EXPECT_GT(*std::max_element(kernel.weights.begin(), kernel.weights.end()), 0);
        EXPECT_EQ(form_of(problem, kernel), WeightForm::general);
      }
      EXPECT_FALSE(is_rank_one(kernel));
    }
}

TEST(ProblemKernels, RandomSeldomSaturatesBytes) {
  std::mt19937_64 engine(1);
  int saturated = 0, all = 0;
  for (const auto& [r, s] : {std::pair{3, 3}, std::pair{7, 7}})
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Kernel kernel = kernel_for(problem_of(r, s, "random"), seed);
      for (int trial = 0; trial < 100; ++trial, ++all) {
        double result = 0;
        for (const double weight : kernel.weights) result += weight * static_cast<double>(engine() % 256);
        saturated += result < 0 || result > 255;
      }
    }
  EXPECT_LT(saturated, all / 10);
}

TEST(ProblemKernels, IntegerIsSmallAndFullRank) {
  for (const auto& [r, s] : extents)
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const Filter2dProblem problem = problem_of(r, s, "integer");
      const Kernel kernel = kernel_for(problem, seed);
      ASSERT_EQ(std::ssize(kernel.weights), r * s);
      EXPECT_EQ(rank_of(kernel), std::min(r, s));
      for (const double weight : kernel.weights) {
        EXPECT_EQ(weight, std::nearbyint(weight));
        EXPECT_LE(std::abs(weight), 4);
      }
      EXPECT_EQ(form_of(problem, kernel) == WeightForm::general, r * s > 1);
      EXPECT_FALSE(is_rank_one(kernel));
    }
}

TEST(ProblemKernels, RankOnePassesTheRule) {
  for (const auto& [r, s] : extents)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Filter2dProblem problem = problem_of(r, s, "rank1");
      const Kernel kernel = kernel_for(problem, seed);
      ASSERT_EQ(std::ssize(kernel.weights), r * s);
      for (const double weight : kernel.weights) {
        EXPECT_NE(weight, std::nearbyint(weight));
        EXPECT_EQ(weight, static_cast<float>(weight));
      }
      EXPECT_GE(magnitudes(kernel), 0.5);
      EXPECT_LT(magnitudes(kernel), 1);
      if (r < 2 || s < 2) continue;
      EXPECT_TRUE(is_rank_one(kernel));
      EXPECT_EQ(form_of(problem, kernel), WeightForm::rank_one);
    }
}

TEST(ProblemKernels, EqualIsEqual) {
  expect_kernel(kernel_for(problem_of(3, 5, "equal"), 1), 3, 5, Weights2d(15, 1.0 / 15));
}

TEST(ProblemKernels, NamedOnesMustFit) {
  EXPECT_EQ(kernel_for(problem_of(5, 5, "gaussian:5,1.1"), 1).weights, parse_kernel("gaussian:5,1.1").weights);
  EXPECT_EQ(error_of([] { kernel_for(problem_of(3, 5, "gaussian:5,1.1"), 1); }),
            "kernel \"gaussian:5,1.1\" has 5 x 5 weights and the problem says r3s5: write r5s5");
  EXPECT_EQ(error_of([] { kernel_for(problem_of(0, 5, "random"), 1); }),
            "a kernel of 0 x 5 weights: it must have 1 to 4096 rows and columns");
  EXPECT_EQ(error_of([] { kernel_for(problem_of(4097, 4097, "integer"), 1); }),
            "a kernel of 4097 x 4097 weights: it must have 1 to 4096 rows and columns");
  EXPECT_NE(error_of([] { kernel_for(problem_of(1, 1, "@file"), 1); }).find("unknown kernel \"@file\""),
            std::string::npos);
}

TEST(ProblemKernels, AreTheSameEverywhere) {
  // With its default seed the engine begins with 14514284786278117030, which leaves 1 on division by 9.
  EXPECT_EQ(kernel_for(problem_of(1, 2, "integer"), 5489).weights[0], 14514284786278117030u % 9 - 4.0);
  for (const char* kind : {"random", "integer", "rank1"}) {
    EXPECT_EQ(kernel_for(problem_of(3, 4, kind), 7).weights, kernel_for(problem_of(3, 4, kind), 7).weights);
    EXPECT_NE(kernel_for(problem_of(3, 4, kind), 7).weights, kernel_for(problem_of(3, 4, kind), 8).weights);
  }
}

}  // namespace
}  // namespace omniconv::image
