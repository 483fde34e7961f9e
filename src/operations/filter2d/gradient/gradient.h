// What the gradient solvers of all devices have in common: whom they serve, how exactly, at what cost (README.md).
#pragma once

#include <algorithm>

#include "operations/filter2d/cost.h"
#include "operations/filter2d/filter2d.h"

namespace omniconv::operations {

// What the magnitude adds to the bound of its two sums.
inline constexpr double magnitude_constant = 1;

inline std::string gradient_refusal(const Filter2dTask& task) {
  if (task.second) return {};
  return "the filter is one kernel, and this serves the magnitude of a pair";
}

// Whether a kernel of the pair is filtered along rows first: where the promised bits demand it, or where it is cheaper.
inline bool rows_first(const Filter2dTask& task, const Weights& weights) {
  if (weights.form != WeightForm::rank_one) return false;
  const bool demanded = is_bit_exact(task.problem) && !weights.exact;
  return demanded || weights.r + weights.s + 4 < weights.r * weights.s;
}

inline double kernel_taps(const Filter2dTask& task, const Weights& weights) {
  const auto r = static_cast<double>(weights.r), s = static_cast<double>(weights.s);
  return rows_first(task, weights) ? r + s : r * s;
}

inline ErrorBound gradient_bound(const Filter2dTask& task) {
  ErrorBound bound;
  for (const Weights* weights : {&task.weights, &*task.second}) {
    const auto r = static_cast<double>(weights->r), s = static_cast<double>(weights->s);
    const bool two_chains = rows_first(task, *weights);
    bound.chain = std::max(bound.chain, two_chains ? r + s : r * s);
    bound.constant = std::max(bound.constant, (two_chains ? 4 : 2) + magnitude_constant);
  }
  return bound;
}

}  // namespace omniconv::operations
