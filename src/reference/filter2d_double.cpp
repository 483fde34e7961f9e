#include <cmath>

#include "reference/alpha.h"
#include "reference/filter2d.h"
#include "reference/pixel.h"

namespace omniconv::reference {

DoubleResult double_element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch) {
  if (task.weights.alpha_rule != AlphaRule::none) return double_with_alpha(task, x, p, q, ch);
  const Weights& weights = task.weights;
  double sum = 0, magnitude = 0;
  for (std::int64_t r = 0; r < weights.r; ++r)
    for (std::int64_t s = 0; s < weights.s; ++s) {
      const double w = weights.values[static_cast<std::size_t>(r * weights.s + s)];
      const double value = pixel(task, x, p + r - weights.anchor_y, q + s - weights.anchor_x, ch);
      sum += w * value;
      magnitude += std::fabs(w * value);
    }
  return {weights.scale * sum + weights.bias, std::fabs(weights.scale) * magnitude + std::fabs(weights.bias)};
}

}  // namespace omniconv::reference
