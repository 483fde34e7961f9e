// The reference of update: an element by itself, in double precision, as the formulas say.
#pragma once

#include <span>

#include "omniconv/update.h"

namespace omniconv::reference {

// Rounded to the type of w, as every solver takes them.
struct UpdateNumbers {
  double rate = 0, l1 = 0, l2 = 0, clip = 0;
  double momentum = 0;                                                                    // of sgd and nesterov
  double gain1 = 0, beta2 = 0, gain2 = 0, epsilon = 0, correction1 = 1, correction2 = 1;  // of adam; 1 - beta
};
// In the order of UpdatePlanBody::append.
UpdateNumbers update_numbers(const UpdateProblem& problem, std::span<const double> numbers);

struct UpdateState {
  double w = 0, m = 0, v = 0;
};
// g times the factor.
UpdateState updated(UpdateProblem::Rule rule, const UpdateNumbers& numbers, double g, const UpdateState& before);

}  // namespace omniconv::reference
