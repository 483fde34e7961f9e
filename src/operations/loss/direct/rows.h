// Vector code of loss on the CPU.
#pragma once

#include <cstdint>

#include "operations/loss/host_plan.h"

namespace omniconv::kernels {

void compute_loss(const LossProblem& problem, const LossRows& rows);

// A row is so many sums side by side, whatever vectors hold, in blocks of so many elements.
inline constexpr std::int64_t loss_sums = 16, loss_block = 4096;

}  // namespace omniconv::kernels
