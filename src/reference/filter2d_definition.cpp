#include <cmath>

#include "reference/alpha.h"
#include "reference/filter2d.h"
#include "reference/sum_of_taps.h"

namespace omniconv::reference {
namespace {

template <typename Real>
void element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch, std::byte* y) {
  const Real sum = sum_of_taps<Real>(task.weights, [&](std::int64_t r, std::int64_t s) {
    return pixel(task, x, p + r - task.weights.anchor_y, q + s - task.weights.anchor_x, ch);
  });
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
