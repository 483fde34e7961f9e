#include <cmath>

#include "operations/filter2d/reference/alpha.h"
#include "operations/filter2d/reference/filter2d.h"
#include "operations/filter2d/reference/sum_of_taps.h"

namespace omniconv::reference {
namespace {

// Rules 2 to 5, for one of the task's kernels.
template <typename Real>
Real kernel_sum(const Filter2dTask& task, const Weights& weights, RowWindow x, std::int64_t p, std::int64_t q,
                std::int64_t ch) {
  return sum_of_taps<Real>(weights, [&](std::int64_t r, std::int64_t s) {
    return pixel(task, x, p + r - weights.anchor_y, q + s - weights.anchor_x, ch);
  });
}

// Rule 7.
template <typename Real>
Real magnitude(Real gx, Real gy) {
  return std::sqrt(std::fma(gx, gx, gy * gy));
}

template <typename Real>
void element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch, std::byte* y) {
  Real sum = kernel_sum<Real>(task, task.weights, x, p, q, ch);
  if (task.second) sum = magnitude(sum, kernel_sum<Real>(task, *task.second, x, p, q, ch));
  const Real value = std::fma(static_cast<Real>(task.weights.scale), sum, static_cast<Real>(task.weights.bias));
  store_element(task.problem.output, value, y);
}

}  // namespace

void definition_element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch,
                        std::byte* y) {
  if (task.weights.alpha_rule != AlphaRule::none) return definition_with_alpha(task, x, p, q, ch, y);
  if (task.weights.accumulate == DataType::f64)
    element<double>(task, x, p, q, ch, y);
  else
    element<float>(task, x, p, q, ch, y);
}

}  // namespace omniconv::reference
