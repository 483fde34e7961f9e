#include "operations/update/reference/element.h"

#include <cmath>

namespace omniconv::reference {

UpdateNumbers update_numbers(const UpdateProblem& problem, std::span<const double> numbers) {
  const auto at = [&](std::size_t i) {
    return problem.type == DataType::f64 ? numbers[i] : static_cast<double>(static_cast<float>(numbers[i]));
  };
  UpdateNumbers all{.rate = at(0), .l1 = at(1), .l2 = at(2), .clip = at(3)};
  if (problem.rule != UpdateProblem::Rule::adam) {
    all.momentum = at(4);
    return all;
  }
  all.gain1 = at(4), all.beta2 = at(5), all.gain2 = at(6);
  all.epsilon = at(7), all.correction1 = at(8), all.correction2 = at(9);
  return all;
}

UpdateState updated(UpdateProblem::Rule rule, const UpdateNumbers& numbers, double g, const UpdateState& before) {
  const auto& [rate, l1, l2, clip, momentum, gain1, beta2, gain2, epsilon, correction1, correction2] = numbers;
  const double sign = before.w > 0 ? 1 : before.w < 0 ? -1 : 0;
  g = g > clip ? clip : g < -clip ? -clip : g;
  g = g + l2 * before.w + l1 * sign;
  UpdateState after = before;
  switch (rule) {
    case UpdateProblem::Rule::sgd:
      after.m = momentum * before.m + g;
      after.w = before.w - rate * after.m;
      break;
    case UpdateProblem::Rule::nesterov:
      after.m = momentum * before.m + g;
      after.w = before.w - rate * (g + momentum * after.m);
      break;
    case UpdateProblem::Rule::adam:
      after.m = before.m + gain1 * (g - before.m);
      after.v = beta2 * before.v + gain2 * g * g;
      after.w = before.w - rate / correction1 * after.m / (std::sqrt(after.v) / std::sqrt(correction2) + epsilon);
      break;
  }
  return after;
}

}  // namespace omniconv::reference
