// Weights that are two products of a column and a row: how they are factored, and what the solver does with them within
// its bound, on images that are as hard on it as can be.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "cpu_testing.h"
#include "operations/filter2d/rank_two/rank_two.h"
#include "operations/filter2d/weights.h"

namespace omniconv {
namespace {

const char* const rank_two = "filter2d/rank_two/cpu.1";

// The sum of `count` products of columns and rows of whole numbers from 1 to 9, times `unit`.
Filter products_of_integers(const Filter2dProblem& problem, int count, double unit, unsigned seed) {
  std::mt19937 random(seed);
  Filter filter{.weights = std::vector<double>(static_cast<std::size_t>(problem.r * problem.s))};
  for (int k = 0; k < count; ++k) {
    std::vector<double> column, row;
    for (std::int64_t i = 0; i < problem.r; ++i) column.push_back(static_cast<double>(random() % 9 + 1));
    for (std::int64_t j = 0; j < problem.s; ++j) row.push_back(static_cast<double>(random() % 9 + 1));
    for (std::size_t i = 0; i < column.size(); ++i)
      for (std::size_t j = 0; j < row.size(); ++j) filter.weights[i * row.size() + j] += unit * column[i] * row[j];
  }
  return centred(problem, filter);
}

// A narrow Gaussian less one of `ratio` times its width, each of sum 1.
Filter difference_of_gaussians(const Filter2dProblem& problem, double sigma, double ratio) {
  const auto gaussian = [](std::int64_t size, double width) {
    std::vector<double> taps;
    double sum = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const double x = (static_cast<double>(i) - static_cast<double>(size - 1) / 2) / width;
      sum += taps.emplace_back(std::exp(-x * x / 2));
    }
    for (double& tap : taps) tap /= sum;
    return taps;
  };
  Filter filter;
  const auto y1 = gaussian(problem.r, sigma), x1 = gaussian(problem.s, sigma);
  const auto y2 = gaussian(problem.r, ratio * sigma), x2 = gaussian(problem.s, ratio * sigma);
  for (std::size_t i = 0; i < y1.size(); ++i)
    for (std::size_t j = 0; j < x1.size(); ++j) filter.weights.push_back(y1[i] * x1[j] - y2[i] * x2[j]);
  return centred(problem, filter);
}

std::string refusal(const Filter2dProblem& problem, const Filter& filter) {
  for (const Candidate& candidate : explain(cpu(), problem, filter))
    if (candidate.solver == rank_two) return candidate.reason;
  return "not a candidate";
}

void expect_served(const Filter2dProblem& problem, const Filter& filter, checking::VerifyOptions options = {}) {
  options.solver.solver = rank_two;
  for (const checking::VerifyResult& result :
       checking::verify(cpu(), problem, operations::AnyTask(task_for(problem, filter)), options))
    EXPECT_EQ(result.status, checking::Status::ok) << to_text(problem) << ": " << result.reason;
}

// What two_products says of its factors, computed anew in the plainest way.
void expect_factors(const Filter2dTask& task, const operations::TwoProducts& found) {
  const Weights& weights = task.weights;
  const double epsilon = weights.accumulate == DataType::f64 ? 0x1p-52 : 0x1p-23;
  const auto s = static_cast<std::size_t>(weights.s);
  double amplification = 1;
  // Sums along rows overflow no earlier than pixels do.
  for (std::size_t k = 0; k < 2; ++k) {
    double row_sum = 0;
    for (std::size_t j = 0; j < s; ++j) row_sum += std::fabs(found.factors.rows[k * s + j]);
    EXPECT_LE(row_sum, 1 + epsilon * static_cast<double>(s));
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(weights.r); ++i)
    for (std::size_t j = 0; j < s; ++j) {
      long double sum = 0, magnitude = 0;
      for (std::size_t k = 0; k < 2; ++k) {
        const double column = found.factors.columns[2 * i + k], row = found.factors.rows[k * s + j];
        if (weights.accumulate == DataType::f32) {
          EXPECT_EQ(column, static_cast<double>(static_cast<float>(column)));
          EXPECT_EQ(row, static_cast<double>(static_cast<float>(row)));
        }
        sum += static_cast<long double>(column) * row;
        magnitude += std::fabs(static_cast<long double>(column) * row);
      }
      const double w = weights.values[i * s + j];
      EXPECT_LE(static_cast<double>(std::fabs(sum - w)), found.difference * epsilon * static_cast<double>(magnitude))
          << "row " << i << ", column " << j;
      amplification = std::max(amplification, static_cast<double>(magnitude) / std::fabs(w));
    }
  EXPECT_NEAR(found.amplification, amplification, 1e-12 * amplification);
  EXPECT_LE(found.difference, operations::largest_difference);
}

const char* const sizes[] = {"r5s5", "r4s7", "r8s5", "r9s9", "r16s15", "r31s31"};

// Two products of positive numbers have a factorisation that cancels nowhere.
TEST(RankTwoFactors, SumsOfTwoProductsAreFound) {
  for (const char* type : {"f32", "f64"})
    for (const char* size : sizes)
      for (unsigned seed = 1; seed <= 5; ++seed) {
        const Filter2dProblem problem = problem_of(fmt::format("filter2d {} h40w40{}", type, size));
        const Filter2dTask task = task_for(problem, products_of_integers(problem, 2, 1, seed));
        const auto found = operations::two_products(task.weights, operations::largest_amplification(task));
        ASSERT_TRUE(found) << type << ' ' << size << ", seed " << seed;
        expect_factors(task, *found);
        const auto best = operations::two_products(task.weights, 1);
        ASSERT_TRUE(best);
        expect_factors(task, *best);
        EXPECT_LE(best->amplification, found->amplification);
        EXPECT_LT(best->amplification, problem.r < 12 ? 1.001 : 2) << type << ' ' << size << ", seed " << seed;
      }
}

TEST(RankTwoFactors, DifferencesOfGaussians) {
  for (const char* size : {"r9s9", "r15s15", "r14s17", "r31s31"}) {
    const Filter2dProblem problem = problem_of(fmt::format("filter2d f32 h40w40{}", size));
    const Filter2dTask task =
        task_for(problem, difference_of_gaussians(problem, static_cast<double>(problem.r) / 10, 1.6));
    const auto found = operations::two_products(task.weights, 1);
    ASSERT_TRUE(found) << size;
    expect_factors(task, *found);
    std::printf("%s: amplification %.3g\n", size, found->amplification);
    EXPECT_LT(found->amplification, 5) << size;  // 13 through the largest weight of 31 x 31
  }
}

TEST(RankTwoFactors, ThreeProductsAreRefused) {
  for (const char* type : {"f16", "f32", "f64"})
    for (const char* size : sizes)
      for (unsigned seed = 1; seed <= 5; ++seed) {
        const Filter2dProblem problem = problem_of(fmt::format("filter2d {} h40w40{}", type, size));
        EXPECT_EQ(refusal(problem, products_of_integers(problem, 3, 1, seed)),
                  "the weights are no sum of two products of a column and a row");
      }
}

// One weight off by more than the bound's constant covers, and by less.
TEST(RankTwoFactors, NearlyTwoProducts) {
  for (const char* type : {"f32", "f64"}) {
    const double epsilon = std::string_view(type) == "f32" ? 0x1p-23 : 0x1p-52;
    const Filter2dProblem problem = problem_of(fmt::format("filter2d {} h40w40r15s15", type));
    for (const std::size_t tap : {0, 7, 112, 200}) {
      for (const double units : {32.0, 1e3, 1e5}) {
        Filter filter = products_of_integers(problem, 2, 1, 7);
        filter.weights[tap] *= 1 + units * epsilon;
        EXPECT_EQ(refusal(problem, filter), "the weights are no sum of two products of a column and a row")
            << type << ", tap " << tap << ", " << units << " units";
      }
      Filter filter = products_of_integers(problem, 2, 1, 7);
      filter.weights[tap] *= 1 + epsilon;
      EXPECT_EQ(refusal(problem, filter), "") << type << ", tap " << tap;
      expect_served(problem, filter);
    }
  }
}

// A weight of 0 where both products are large, and weights much smaller than they are: no multiple of sum |x * w|
// bounds what is lost there.
TEST(RankTwoFactors, CancellingProductsAreRefused) {
  const Filter2dProblem problem = problem_of("filter2d f32 h40w40r9s9");
  Filter filter{.weights = std::vector<double>(81)};
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 9; ++j) filter.weights[static_cast<std::size_t>(9 * i + j)] = i - j;
  EXPECT_EQ(refusal(problem, filter),
            "the two products cancel, up to inf times a weight: their bound would be inf units, and that of one chain "
            "over the taps is 42.5");
  for (double& w : filter.weights) w = w + 0.01;
  EXPECT_NE(refusal(problem, filter).find("the two products cancel, up to"), std::string::npos);
  EXPECT_EQ(refusal(problem, filter).find("inf"), std::string::npos);
}

TEST(RankTwo, RefusesWhatItDoesNotServe) {
  const auto reason = [](const char* text) {
    const Filter2dProblem problem = problem_of(text);
    return refusal(problem, filter_for(problem));
  };
  EXPECT_EQ(reason("filter2d f32 h40w40r15s15 kernel:unsharp:15,3,1.5"), "");
  EXPECT_EQ(reason("filter2d u8 h40w40r15s15 kernel:unsharp:15,3,1.5"),
            "an integer image has promised bits, which two products do not give");
  EXPECT_EQ(reason("filter2d f32 h40w40r15s15 kernel:gaussian:15"),
            "the weights are one product of a column and a row");
  EXPECT_EQ(reason("filter2d f32 h40w40r15s15 kernel:equal"), "the weights are one product of a column and a row");
  EXPECT_EQ(reason("filter2d f32 h40w40r15s15"), "the weights are no sum of two products of a column and a row");
  EXPECT_EQ(reason("filter2d f32 h40w40r9s9 kernel:log:9,1.4"),  // less its mean: a third product
            "the weights are no sum of two products of a column and a row");
  EXPECT_EQ(reason("filter2d f32 h40w40r3s3 kernel:sobel"),
            "the result is the magnitude of a pair of kernels, and this filters by one");
  EXPECT_EQ(reason("filter2d f32 h40w40c4r15s15 alpha:3 kernel:unsharp:15,3,1.5"),
            "treats all channels alike, and channel 3 holds opacity");
  EXPECT_EQ(reason("filter2d f32 h40w40r3s3 kernel:unsharp:3,1,1"),
            "two products take 12 multiply-adds, and one chain over the taps takes 9");
  EXPECT_EQ(reason("filter2d f32 h40w40r1s99"),
            "two products take 200 multiply-adds, and one chain over the taps takes 99");
}

TEST(RankTwo, IsChosenWhereItPays) {
  const auto chosen = [](const char* text) {
    const Filter2dProblem problem = problem_of(text);
    return Filter2dPlan(cpu(), problem, filter_for(problem)).solver();
  };
  EXPECT_EQ(chosen("filter2d f32 h900w900r9s9 kernel:unsharp:9,2,1.5"), rank_two);
  EXPECT_EQ(chosen("filter2d f16>u8 h900w900r31s31 kernel:unsharp:31,6,0.5"), rank_two);
  EXPECT_EQ(chosen("filter2d f64 h900w900r21s21 kernel:unsharp:21,6,0.5"), rank_two);
  EXPECT_EQ(chosen("filter2d f32 h900w900r5s5 kernel:unsharp:5,1,1"), "filter2d/direct/cpu.1");
  EXPECT_EQ(chosen("filter2d u16 h900w900r31s31 kernel:unsharp:31,6,0.5"), "filter2d/direct/cpu.1");
}

class EveryRankTwo : public testing::TestWithParam<const char*> {};

TEST_P(EveryRankTwo, BordersChannelsSizes) {
  for (const char* border : {"constant:0", "constant:7", "replicate", "reflect", "reflect101", "wrap", "valid"})
    for (const int c : {1, 3, 4, 5})
      for (const char* size : {"r5s5", "r4s7", "r8s5", "r9s10"}) {
        const auto problem = problem_of(fmt::format("filter2d {} h19w23c{}{} {}", GetParam(), c, size, border));
        expect_served(problem, products_of_integers(problem, 2, 0.01, 3));
      }
}

TEST_P(EveryRankTwo, AnchorsScaleBiasFlipStrips) {
  auto problem = problem_of(fmt::format("filter2d {} h23w25c3r7s9 reflect", GetParam()));
  for (const bool flip : {false, true})
    for (const std::int64_t anchor : {0, 2, 6}) {
      problem.flip = flip;
      Filter filter = products_of_integers(problem, 2, 0.005, 4);
      filter.anchor_y = anchor;
      filter.anchor_x = 8 - anchor;
      filter.scale = 0.37;
      filter.bias = 11.25;
      expect_served(problem, filter, {.strip_rows = 4});
      filter.scale = -0.25;
      expect_served(problem, filter, {.strip_rows = 1});
    }
}

TEST_P(EveryRankTwo, KernelsLargerThanTheImage) {
  for (const char* border : {"constant:2", "replicate", "reflect", "reflect101", "wrap"})
    for (const char* size : {"h1w1", "h1w7", "h5w1", "h3w2"}) {
      const auto problem = problem_of(fmt::format("filter2d {} {}c2r9s11 {}", GetParam(), size, border));
      expect_served(problem, products_of_integers(problem, 2, 0.01, 5));
    }
}

// Vector bodies, tails of every length, blocks and their seams; more channels than a block has elements.
TEST_P(EveryRankTwo, WideRows) {
  for (int w = 100; w < 133; ++w) {
    const auto problem = problem_of(fmt::format("filter2d {} h6w{}r5s5", GetParam(), w));
    expect_served(problem, products_of_integers(problem, 2, 0.01, 6));
  }
  for (const char* text : {"h40w3001c3r15s15 wrap", "h9w30c3000r5s5 replicate"}) {
    const auto problem = problem_of(fmt::format("filter2d {} {}", GetParam(), text));
    expect_served(problem, products_of_integers(problem, 2, 0.001, 6), {.sampled = true, .samples = samples(4000)});
  }
}

INSTANTIATE_TEST_SUITE_P(RankTwo, EveryRankTwo,
                         testing::ValuesIn(types_to_check({"f16", "f32", "f64", "f32>u8", "f16>f32", "f32>f16",
                                                           "f64>f32", "f32>f64", "f32>s32"})),
                         [](const auto& type) {
                           std::string name = type.param;
                           std::replace(name.begin(), name.end(), '>', '_');
                           return name;
                         });

// Past the caches, where rows begin on cache lines and where they do not.
TEST(RankTwo, LargeImages) {
  for (const char* text : {"filter2d f32 h900w1600c3r15s15", "filter2d f32 h900w1601c3r31s31 wrap"}) {
    const auto problem = problem_of(text);
    expect_served(problem, difference_of_gaussians(problem, static_cast<double>(problem.r) / 10, 4),
                  {.sampled = true, .samples = samples(5000)});
  }
}

// One window, by the tiles that the solver runs: the image is as large as the kernel.
template <typename Real>
Real filtered(const kernels::TileFilter<Real>& filter, const Filter2dProblem& problem, const std::vector<Real>& image) {
  Real result = 0;
  std::vector<std::byte> workspace(static_cast<std::size_t>(filter.workspace_bytes()));
  const std::int64_t row_bytes = problem.w * static_cast<std::int64_t>(sizeof(Real));
  filter.run({reinterpret_cast<const std::byte*>(image.data()), row_bytes, 0, problem.h},
             {reinterpret_cast<std::byte*>(&result), sizeof(Real), 0, false}, {0, 1, 0, 1}, workspace.data());
  return result;
}

// Images made from the factors: single pixels, signs that make one product or their difference as large as it can be,
// and pixels that weigh every tap alike, so that those count most at which the products cancel.
template <typename Real>
std::vector<std::vector<Real>> hard_images(const Weights& weights, const operations::TwoProducts& found) {
  const std::size_t s = static_cast<std::size_t>(weights.s), taps = weights.values.size();
  const auto product = [&](std::size_t tap, std::size_t k) {
    return found.factors.columns[2 * (tap / s) + k] * found.factors.rows[k * s + tap % s];
  };
  std::vector<std::vector<Real>> images;
  for (std::size_t tap = 0; tap < taps; ++tap) {
    images.emplace_back(taps)[tap] = static_cast<Real>(1.1);
    images.emplace_back(taps, static_cast<Real>(0x1p-60))[tap] = static_cast<Real>(-1.3);
  }
  std::mt19937 random(1);
  for (int seed = 0; seed < 50; ++seed) {
    std::vector<Real> first(taps), second(taps), opposed(taps), whole(taps);
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const double size = 1 + static_cast<double>(random() % 1000) / 1000, w = weights.values[tap];
      first[tap] = static_cast<Real>(std::copysign(size, product(tap, 0)));
      second[tap] = static_cast<Real>(std::copysign(size, product(tap, 1)));
      opposed[tap] = static_cast<Real>(product(tap, 0) * product(tap, 1) < 0 ? std::copysign(size / w, first[tap]) : 0);
      whole[tap] = static_cast<Real>(size / w);
    }
    images.insert(images.end(), {first, second, opposed, whole});
  }
  return images;
}

// The largest error over the hard images, in units of epsilon * sum |x * w|.
template <typename Real>
double largest_error(const Filter2dTask& task, const operations::TwoProducts& found) {
  const double epsilon = std::is_same_v<Real, double> ? 0x1p-52 : 0x1p-23;
  const kernels::TileFilter<Real> filter(task, found.factors);
  double largest = 0;
  for (const std::vector<Real>& image : hard_images<Real>(task.weights, found)) {
    long double sum = 0, magnitude = 0;
    for (std::size_t tap = 0; tap < image.size(); ++tap) {
      const long double term = static_cast<long double>(task.weights.values[tap]) * image[tap];
      sum += term;
      magnitude += std::fabs(term);
    }
    const long double error = std::fabs(filtered(filter, task.problem, image) - sum);
    if (error > 0) largest = std::max(largest, static_cast<double>(error / magnitude) / epsilon);
  }
  return largest;
}

double units(const operations::ErrorBound& bound) {
  return bound.amplification * (bound.chain / 2 + bound.constant);
}

TEST(RankTwo, BoundHoldsOnHardImages) {
  for (const char* size : {"h9w9r9s9", "h15w15r15s15", "h31w31r31s31"})
    for (const char* type : {"f32", "f64"}) {
      const auto problem = problem_of(fmt::format("filter2d {} {} valid", type, size));
      for (const Filter& filter : {difference_of_gaussians(problem, static_cast<double>(problem.r) / 8, 1.6),
                                   difference_of_gaussians(problem, static_cast<double>(problem.r) / 10, 4),
                                   products_of_integers(problem, 2, 0.1, 8)}) {
        const Filter2dTask task = task_for(problem, filter);
        const auto found = operations::two_products(task.weights, operations::largest_amplification(task));
        ASSERT_TRUE(found);
        const double bound = units(operations::rank_two_bound(task, found->amplification));
        const double error = task.weights.accumulate == DataType::f64 ? largest_error<double>(task, *found)
                                                                      : largest_error<float>(task, *found);
        std::printf("%s: amplification %.3g, %.3g of %.4g units\n", to_text(problem).c_str(), found->amplification,
                    error, bound);
        EXPECT_GT(error, 0.5);
        EXPECT_LE(error, bound);
      }
    }
}

// What the refusal of such products prevents: the bound holds with their amplification, and not without.
TEST(RankTwo, AmplificationIsNeeded) {
  const auto problem = problem_of("filter2d f32 h9w9r9s9 valid");
  Filter filter{.weights = std::vector<double>(81)};
  for (int i = 0; i < 9; ++i)
    for (int j = 0; j < 9; ++j) filter.weights[static_cast<std::size_t>(9 * i + j)] = 1.1 * i - 1.1 * j + 0.001;
  const Filter2dTask task = task_for(problem, centred(problem, filter));
  const auto found = operations::two_products(task.weights, 1);
  ASSERT_TRUE(found);
  const double error = largest_error<float>(task, *found);
  EXPECT_LE(error, units(operations::rank_two_bound(task, found->amplification)));
  EXPECT_GT(error, units(operations::rank_two_bound(task, 1)));
  EXPECT_GT(error, 81.0 / 2 + 2);  // of a chain over the taps
}

}  // namespace
}  // namespace omniconv
