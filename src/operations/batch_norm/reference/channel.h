// batch_norm by its formulas, a channel after the other, in double precision.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/batch_norm.h"

namespace omniconv::reference {

// Of a channel of x, with its first element p.
struct ChannelMoments {
  double mean = 0, variance = 0;             // the biased variance
  double distance = 0, square_distance = 0;  // the means of |x - p| and of (x - p)^2
};
ChannelMoments channel_moments(const BatchNormProblem& problem, const std::byte* x, std::int64_t channel);

// A channel's numbers that y is made of.
struct ChannelNumbers {
  double mean = 0, invstd = 0, gamma = 0, beta = 0;
};
// Whether y is greater than 0: by the bits of y, which are promised.
bool is_positive(DataType type, double x, const ChannelNumbers& numbers);
// The gradient of what y was before its relu, where it has one.
inline double passed_gradient(const BatchNormProblem& problem, double x, double dy, const ChannelNumbers& numbers) {
  return !problem.relu || is_positive(problem.type, x, numbers) ? dy : 0;
}

// Sums over a channel of g, and of g * (x - mean); and of their magnitudes.
struct ChannelSums {
  double g = 0, product = 0, magnitude = 0, product_magnitude = 0;
};
ChannelSums channel_sums(const BatchNormProblem& problem, const std::byte* x, const std::byte* dy, std::int64_t channel,
                         const ChannelNumbers& numbers);

}  // namespace omniconv::reference
