// What the integer_dot solvers of all devices have in common: whom they serve, how exactly (README.md).
#pragma once

#include <cmath>

#include "operations/filter2d/direct/direct.h"
#include "operations/filter2d/vector/dot_rows.h"

namespace omniconv::operations {

inline kernels::ByteWeights byte_weights(const Weights& weights) {
  return kernels::byte_weights(weights.values, weights.r, weights.s);
}

// The scale of sums that are integers: the weights' unit is a power of two.
inline double integer_sum_scale(const Weights& weights, const kernels::ByteWeights& bytes) {
  return weights.scale * bytes.unit;
}

inline std::string integer_dot_refusal(const Filter2dTask& task) {
  if (const std::string reason = alpha_refusal(task); !reason.empty()) return reason;
  if (task.second) return pair_refusal;
  if (task.problem.input != DataType::u8) return "serves u8 images";
  const Weights& weights = task.weights;
  if (weights.form == WeightForm::equal) return "equal weights are multiplied after the sum";
  if (!weights.exact) return "the weights are no integers times a power of two whose sums are exact in fp32";
  const kernels::ByteWeights bytes = byte_weights(weights);
  if (bytes.low.empty()) return "the weights are no integers, times a power of two, of at most 15 bits";
  const double scale = integer_sum_scale(weights, bytes);
  if (weights.scale != 0 && (std::fabs(scale) < 0x1p-100 || std::fabs(scale) > 0x1p100))
    return "the scale is too small or too large to take the weights' unit in";
  return {};
}

}  // namespace omniconv::operations
