// Vector code of dropout on the CPU.
#pragma once

#include "operations/dropout/host_plan.h"

namespace omniconv::kernels {

void drop(const DropoutProblem& problem, const operations::DropoutNumbers& numbers, std::uint32_t step,
          const operations::DropoutPiece& piece);

}  // namespace omniconv::kernels
