// Vector code of loss on the CPU.
#pragma once

#include <cstdint>

#include "operations/loss/host_plan.h"

namespace omniconv::kernels {

void compute_loss(const LossProblem& problem, const LossRows& rows);

// A row is so many sums side by side, whatever vectors hold, in blocks of so many elements. Of softmax rows that are no
// longer than `loss_short` have one sum each, and so many of them are side by side.
inline constexpr std::int64_t loss_sums = 16, loss_block = 4096, loss_short = 24;

}  // namespace omniconv::kernels
