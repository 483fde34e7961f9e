// The weights of problems: random ones whose form is certain, and the same everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/quoted.h"
#include "omniconv/error.h"
#include "operations/filter2d/kernels.h"
#include "operations/filter2d/random_image.h"

namespace omniconv {
namespace {

// Random numbers that are the same on every platform: the engine is specified to the bit, the library's distributions
// are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // [0, 1), 53 bits.
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }
  std::int64_t below(std::int64_t limit) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(limit));
  }

 private:
  std::mt19937_64 engine_;
};

double sum_of_magnitudes(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double s, double value) { return s + std::abs(value); });
}

bool all_equal(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

// Independent uniform values have full rank but for a chance of about 2^-53.
std::vector<double> random_weights(std::size_t count, Random& random) {
  std::vector<double> weights(count);
  for (double& weight : weights) weight = (4 * random.unit() - 1) / 3;  // a quarter of them below zero
  if (count == 1) weights[0] = std::abs(weights[0]) + 1;
  const auto [lowest, highest] = std::minmax_element(weights.begin(), weights.end());
  if (count > 1 && *highest <= 0) *highest = 1;
  if (count > 1 && *lowest >= 0) *lowest = -*lowest - 0x1p-10;
  const double scale = 0.9 / sum_of_magnitudes(weights);
  for (double& weight : weights) weight *= scale;
  return weights;
}

// Full rank modulo a prime is full rank.
bool has_full_rank(const std::vector<double>& weights, std::int64_t r, std::int64_t s) {
  constexpr std::int64_t prime = 2147483647;
  const auto inverse = [](std::int64_t value) {  // value^(prime - 2)
    std::int64_t result = 1;
    for (std::int64_t exponent = prime - 2; exponent > 0; exponent /= 2, value = value * value % prime)
      if (exponent % 2 == 1) result = result * value % prime;
    return result;
  };
  std::vector<std::int64_t> a(weights.begin(), weights.end());
  for (auto& value : a) value = (value + prime) % prime;
  const auto at = [&](std::int64_t i, std::int64_t j) -> auto& {
    return a[static_cast<std::size_t>(i * s + j)];
  };
  std::int64_t rank = 0;
  for (std::int64_t column = 0; column < s && rank < r; ++column) {
    std::int64_t pivot = rank;
    while (pivot < r && at(pivot, column) == 0) ++pivot;
    if (pivot == r) continue;
    for (std::int64_t j = 0; j < s; ++j) std::swap(at(pivot, j), at(rank, j));
    const std::int64_t reciprocal = inverse(at(rank, column));
    for (std::int64_t i = rank + 1; i < r; ++i) {
      const std::int64_t factor = at(i, column) * reciprocal % prime;
      for (std::int64_t j = column; j < s; ++j) at(i, j) = (at(i, j) + (prime - factor) * at(rank, j)) % prime;
    }
    ++rank;
  }
  return rank == std::min(r, s);
}

std::vector<double> integer_weights(std::int64_t r, std::int64_t s, Random& random) {
  std::vector<double> weights(static_cast<std::size_t>(r * s));
  const auto serves = [&] {
    if (weights.size() > 1 && all_equal(weights)) return false;
    // Beyond 64 the chance of less (two equal rows, above all) is under 64^2 / 9^64.
    return std::min(r, s) > 64 || has_full_rank(weights, r, s);
  };
  do {
    for (double& weight : weights) weight = static_cast<double>(random.below(9) - 4);
  } while (!serves());
  return weights;
}

// Odd multiples of 2^-12 below 1, one in eight of them negative.
std::vector<double> short_factor(std::int64_t size, Random& random) {
  std::vector<double> factor(static_cast<std::size_t>(size));
  for (double& value : factor) {
    value = static_cast<double>(2 * random.below(2048) + 1) * 0x1p-12;
    if (random.below(8) == 0) value = -value;
  }
  return factor;
}

Kernel rank_one_kernel(std::int64_t r, std::int64_t s, Random& random) {
  Kernel kernel;
  do {
    const std::vector<double> column = short_factor(r, random), row = short_factor(s, random);
    kernel = {.r = r, .s = s};
    for (const double a : column)
      for (const double b : row) kernel.weights.push_back(a * b);
  } while (kernel.weights.size() > 1 && all_equal(kernel.weights));
  const int exponent = std::ilogb(sum_of_magnitudes(kernel.weights)) + 1;
  for (double& weight : kernel.weights) weight = std::ldexp(weight, -exponent);
  return kernel;
}

}  // namespace

Kernel kernel_for(const Filter2dProblem& problem, std::uint64_t seed) {
  const std::int64_t r = problem.r, s = problem.s;
  if (r < 1 || s < 1 || r > largest_kernel_side || s > largest_kernel_side)
    throw bad_input(
        fmt::format("a kernel of {} x {} weights: it must have 1 to {} rows and columns", r, s, largest_kernel_side));
  Random random(seed);
  const auto count = static_cast<std::size_t>(r * s);
  if (problem.kernel == "random") return {.r = r, .s = s, .weights = random_weights(count, random)};
  if (problem.kernel == "integer") return {.r = r, .s = s, .weights = integer_weights(r, s, random)};
  if (problem.kernel == "rank1") return rank_one_kernel(r, s, random);
  if (problem.kernel == "equal")
    return {.r = r, .s = s, .weights = std::vector<double>(count, 1 / static_cast<double>(count))};
  Kernel kernel = named_kernel(problem.kernel);
  if (kernel.r != r || kernel.s != s)
    throw bad_input(fmt::format("kernel {} has {} x {} weights and the problem says r{}s{}: write r{}s{}",
                                quoted(problem.kernel), kernel.r, kernel.s, r, s, kernel.r, kernel.s));
  return kernel;
}

Filter filter_for(const Filter2dProblem& problem, std::uint64_t seed) {
  return centred(problem, filter_of(kernel_for(problem, seed)));
}

}  // namespace omniconv
