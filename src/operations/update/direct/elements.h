// Vector code of update on the CPU.
#pragma once

#include <span>

#include "operations/update/host_plan.h"

namespace omniconv::kernels {

void update(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers);
bool is_finite_gradient(const UpdateProblem& problem, const UpdatePiece& piece);
void copy_parameters(const UpdateProblem& problem, const UpdatePiece& piece);

}  // namespace omniconv::kernels
