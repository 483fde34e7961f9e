// What solvers of activation on the CPU share: pieces of the arrays, over the device's threads.
#pragma once

#include "operations/activation/activation.h"

namespace omniconv {

// So many elements of `to` from as many of `from`: x forward, and y backward, which reads dy, too.
struct ActivationPiece {
  const std::byte* from = nullptr;
  const std::byte* dy = nullptr;
  std::byte* to = nullptr;
  std::int64_t elements = 0;
};

namespace operations {

using ActivatePiece = void(const ActivationProblem& problem, const ActivationPiece& piece);
std::shared_ptr<ActivationPlanBody> activation_on_host(const ActivationProblem& problem, const DevicePointer& device,
                                                       ActivatePiece* activate);

}  // namespace operations
}  // namespace omniconv
