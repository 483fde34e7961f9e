#include <cmath>

#include "operations/filter2d/reference/alpha.h"
#include "operations/filter2d/reference/filter2d.h"
#include "operations/filter2d/reference/pixel.h"

namespace omniconv::reference {
namespace {

// The sum, and the sum of magnitudes, of one of the task's kernels.
DoubleResult sum_of_taps(const Filter2dTask& task, const Weights& weights, RowWindow x, std::int64_t p, std::int64_t q,
                         std::int64_t ch) {
  double sum = 0, magnitude = 0;
  for (std::int64_t r = 0; r < weights.r; ++r)
    for (std::int64_t s = 0; s < weights.s; ++s) {
      const double w = weights.values[static_cast<std::size_t>(r * weights.s + s)];
      const double value = pixel(task, x, p + r - weights.anchor_y, q + s - weights.anchor_x, ch);
      sum += w * value;
      magnitude += std::fabs(w * value);
    }
  return {sum, magnitude};
}

}  // namespace

DoubleResult double_element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch) {
  if (task.weights.alpha_rule != AlphaRule::none) return double_with_alpha(task, x, p, q, ch);
  DoubleResult sum = sum_of_taps(task, task.weights, x, p, q, ch);
  if (task.second) {
    const DoubleResult gy = sum_of_taps(task, *task.second, x, p, q, ch);
    sum = {std::hypot(sum.value, gy.value), std::hypot(sum.magnitude, gy.magnitude)};
  }
  const double scale = task.weights.scale, bias = task.weights.bias;
  return {scale * sum.value + bias, std::fabs(scale) * sum.magnitude + std::fabs(bias)};
}

}  // namespace omniconv::reference
