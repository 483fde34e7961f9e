// Vector code of activation on the CPU.
#pragma once

#include "operations/activation/host_plan.h"

namespace omniconv::kernels {

void activate(const ActivationProblem& problem, const ActivationPiece& piece);

}  // namespace omniconv::kernels
