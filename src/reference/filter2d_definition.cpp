#include <cmath>

#include "reference/filter2d.h"
#include "reference/pixel.h"

namespace omniconv::reference {
namespace {

// Rules 2 to 5 in the accumulating type, for one of the task's kernels.
template <typename Real>
Real sum_of_taps(const Filter2dTask& task, const Weights& weights, RowWindow x, std::int64_t p, std::int64_t q,
                 std::int64_t ch) {
  const auto tap = [&](std::int64_t r, std::int64_t s) {
    return pixel(task, x, p + r - weights.anchor_y, q + s - weights.anchor_x, ch);
  };
  if (weights.form == WeightForm::equal) {
    std::int64_t sum = 0;
    for (std::int64_t r = 0; r < weights.r; ++r)
      for (std::int64_t s = 0; s < weights.s; ++s) sum += static_cast<std::int64_t>(tap(r, s));
    return static_cast<Real>(sum) * static_cast<Real>(weights.values.front());
  }
  if (weights.form == WeightForm::rank_one) {
    Real down = 0;
    for (std::int64_t r = 0; r < weights.r; ++r) {
      Real along = 0;
      for (std::int64_t s = 0; s < weights.s; ++s)
        along =
            std::fma(static_cast<Real>(weights.row[static_cast<std::size_t>(s)]), static_cast<Real>(tap(r, s)), along);
      down = std::fma(static_cast<Real>(weights.column[static_cast<std::size_t>(r)]), along, down);
    }
    return down;
  }
  Real sum = 0;
  for (std::int64_t r = 0; r < weights.r; ++r)
    for (std::int64_t s = 0; s < weights.s; ++s)
      sum = std::fma(static_cast<Real>(weights.values[static_cast<std::size_t>(r * weights.s + s)]),
                     static_cast<Real>(tap(r, s)), sum);
  return sum;
}

// Rule 7.
template <typename Real>
Real magnitude(Real gx, Real gy) {
  return std::sqrt(std::fma(gx, gx, gy * gy));
}

template <typename Real>
void element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch, std::byte* y) {
  Real sum = sum_of_taps<Real>(task, task.weights, x, p, q, ch);
  if (task.second) sum = magnitude(sum, sum_of_taps<Real>(task, *task.second, x, p, q, ch));
  const Real value = std::fma(static_cast<Real>(task.weights.scale), sum, static_cast<Real>(task.weights.bias));
  store_element(task.problem.output, value, y);
}

}  // namespace

void definition_element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch,
                        std::byte* y) {
  if (task.weights.accumulate == DataType::f64)
    element<double>(task, x, p, q, ch, y);
  else
    element<float>(task, x, p, q, ch, y);
}

}  // namespace omniconv::reference
