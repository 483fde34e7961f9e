// What solvers of loss on the CPU share: rows over the device's threads.
#pragma once

#include "operations/loss/loss.h"

namespace omniconv {

// So many rows of every array, from one on. `target`: labels, or t. y or dx is null where there is none.
struct LossRows {
  const std::byte* x = nullptr;
  const std::byte* target = nullptr;
  std::byte* y = nullptr;
  std::byte* dx = nullptr;
  std::int64_t rows = 0;
  double scale = 1;
};

namespace operations {

using ComputeLoss = void(const LossProblem& problem, const LossRows& rows);
std::shared_ptr<LossPlanBody> loss_on_host(const LossProblem& problem, const DevicePointer& device,
                                           ComputeLoss* compute);

}  // namespace operations
}  // namespace omniconv
