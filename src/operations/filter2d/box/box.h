// What the box solvers of all devices have in common: whom they serve, how exactly, at what cost (README.md).
#pragma once

#include <algorithm>

#include "operations/filter2d/cost.h"
#include "operations/filter2d/filter2d.h"
#include "operations/filter2d/vector/real_box.h"

namespace omniconv::operations {

inline std::string box_refusal(const Filter2dTask& task) {
  if (const std::string reason = alpha_refusal(task); !reason.empty()) return reason;
  if (task.second) return pair_refusal;
  const std::vector<double>& weights = task.weights.values;
  if (std::any_of(weights.begin(), weights.end(), [&](double w) { return w != weights.front(); }))
    return "the weights are not all equal";
  return {};
}

// A product is rounded once, and passes through at most r - 1 additions down a column, those along the row and the last
// multiply-add.
inline ErrorBound box_bound(const Filter2dTask& task) {
  return {.chain = static_cast<double>(task.weights.r + kernels::real_box_additions(task.weights.s))};
}

// Measured (docs/choosing.md): whatever the size of the box on integers; on floating images a little more for long
// rows.
inline double box_operations(const Filter2dTask& task) {
  constexpr double bytes = 30, integers = 48;
  if (task.problem.input == DataType::u8) return bytes;
  if (is_bit_exact(task.problem)) return integers;
  return cpu_pixel_operations(task) + 36 + 6 * static_cast<double>(kernels::real_box_additions(task.weights.s));
}

}  // namespace omniconv::operations
