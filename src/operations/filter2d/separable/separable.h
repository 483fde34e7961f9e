// What the separable solvers of all devices have in common: whom they serve, how exactly (README.md).
#pragma once

#include "operations/filter2d/filter2d.h"

namespace omniconv::operations {

inline std::string separable_refusal(const Filter2dTask& task) {
  if (const std::string reason = alpha_refusal(task); !reason.empty()) return reason;
  if (task.second) return pair_refusal;
  if (task.weights.form == WeightForm::rank_one) return {};
  return "the weights are no product of a column and a row (" + std::string(name(task.weights.form)) + ")";
}

// Of the GPU variants, which serve equal weights too where every order of adding the pixels gives the same bits.
inline bool adds_pixels(const Filter2dTask& task) {
  return task.weights.form == WeightForm::equal;
}
inline std::string separable_or_equal_refusal(const Filter2dTask& task) {
  if (!adds_pixels(task) || task.second || !alpha_refusal(task).empty()) return separable_refusal(task);
  return pixel_sums_fit_f32(task) ? "" : "equal weights whose sums of pixels pass 2^24 are added as integers";
}

// Two chains, and weights that may be two units in the last place off their product.
inline ErrorBound separable_bound(const Filter2dTask& task) {
  return {.chain = static_cast<double>(task.weights.r) + static_cast<double>(task.weights.s), .constant = 4};
}

}  // namespace omniconv::operations
