// What the premultiplied solvers of all devices have in common: whom they serve, how exactly, at what cost (README.md).
#pragma once

#include "operations/filter2d/cost.h"
#include "operations/filter2d/filter2d.h"

namespace omniconv::operations {

inline std::string premultiplied_refusal(const Filter2dTask& task) {
  if (task.weights.alpha_rule == AlphaRule::none) return "the problem has no alpha channel: alpha:I names one";
  return {};
}

// Sums along the kernel's rows, then down: for equal weights too, unless they are sums of plain integers.
inline bool premultiplied_rows_first(const Filter2dTask& task) {
  const bool shares = task.weights.alpha_rule == AlphaRule::premultiplied;
  return task.weights.form == WeightForm::rank_one || (shares && task.weights.form == WeightForm::equal);
}

// Products of colour and opacity, two divisions and the factors' error beside the chains.
inline ErrorBound premultiplied_bound(const Filter2dTask& task) {
  const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
  if (premultiplied_rows_first(task)) return {.chain = r + s, .constant = 6};
  return {.chain = r * s, .constant = 4};
}

}  // namespace omniconv::operations
