// What the direct solvers of all devices have in common: whom they serve, how exactly, at what cost (README.md).
#pragma once

#include "operations/filter2d/filter2d.h"

namespace omniconv::operations {

inline std::string direct_refusal(const Filter2dTask& task) {
  if (const std::string reason = alpha_refusal(task); !reason.empty()) return reason;
  if (task.second) return pair_refusal;
  if (is_bit_exact(task.problem) && task.weights.form == WeightForm::rank_one && !task.weights.exact)
    return "the weights have rank one, so that the promised bits are those of rows first, then columns";
  return {};
}

inline ErrorBound direct_bound(const Filter2dTask& task) {
  return {.chain = static_cast<double>(task.weights.r) * static_cast<double>(task.weights.s)};
}

// Taps.
inline double direct_operations(const Filter2dTask& task) {
  return static_cast<double>(task.weights.r) * static_cast<double>(task.weights.s);
}

}  // namespace omniconv::operations
