// Vector code of update on the CPU.
#pragma once

#include <span>

#include "operations/update/host_plan.h"

namespace omniconv::kernels {

// Of guarded whether all g * factor are finite.
bool update(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers);
void copy_parameters(const UpdateProblem& problem, const UpdatePiece& piece);

}  // namespace omniconv::kernels
