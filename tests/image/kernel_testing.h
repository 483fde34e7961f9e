// What the tests of kernels share: texts of refusals, sums and their rounding, and the rank-one rule.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "../error_testing.h"
#include "image/kernel_text.h"

namespace omniconv::image {

using Weights2d = std::vector<double>;

inline std::string kernel_error(std::string_view text) {
  return error_of([&] { parse_kernel(text); });
}

inline std::string file_error(std::string_view content) {
  return error_of([&] { parse_kernel_file(content, "mask.txt"); });
}

inline double at(const Kernel& kernel, std::int64_t i, std::int64_t j) {
  return kernel.weights[static_cast<std::size_t>(i * kernel.s + j)];
}

inline double sum(const Kernel& kernel) {
  return std::accumulate(kernel.weights.begin(), kernel.weights.end(), 0.0);
}

inline double magnitudes(const Kernel& kernel) {
  return std::accumulate(kernel.weights.begin(), kernel.weights.end(), 0.0,
                         [](double total, double weight) { return total + std::abs(weight); });
}

// The rounding of a sum of the weights, each of which carries a few roundings of its own.
inline double sum_rounding(const Kernel& kernel) {
  return (static_cast<double>(kernel.weights.size()) + 8) * 0x1p-53 * magnitudes(kernel);
}

inline void expect_kernel(const Kernel& kernel, std::int64_t r, std::int64_t s, const Weights2d& weights) {
  EXPECT_EQ(kernel.r, r);
  EXPECT_EQ(kernel.s, s);
  EXPECT_EQ(kernel.weights, weights);
  EXPECT_FALSE(kernel.anchor_y.has_value());
  EXPECT_FALSE(kernel.anchor_x.has_value());
}

// Rule 3 of docs/arithmetic.md, to the letter. The product of two fp32 values is exact in double.
inline bool is_rank_one(const Kernel& kernel) {
  if (kernel.r < 2 || kernel.s < 2) return false;
  const auto rounded = [&](std::int64_t i, std::int64_t j) { return static_cast<float>(at(kernel, i, j)); };
  std::int64_t pivot_i = 0, pivot_j = 0;
  for (std::int64_t i = 0; i < kernel.r; ++i)
    for (std::int64_t j = 0; j < kernel.s; ++j)
      if (std::abs(rounded(i, j)) > std::abs(rounded(pivot_i, pivot_j))) pivot_i = i, pivot_j = j;
  for (std::int64_t i = 0; i < kernel.r; ++i)
    for (std::int64_t j = 0; j < kernel.s; ++j) {
      const float w = rounded(i, j);
      const double row = rounded(pivot_i, j);
      const auto column = static_cast<float>(static_cast<double>(rounded(i, pivot_j)) / rounded(pivot_i, pivot_j));
      const float magnitude = std::abs(w);
      const double ulp = static_cast<double>(std::nextafter(magnitude, INFINITY)) - magnitude;
      if (std::abs(static_cast<double>(column) * row - w) > 2 * ulp) return false;
    }
  return true;
}

}  // namespace omniconv::image
