// Vector code of activation on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/activation.h"

namespace omniconv::kernels {

// So many elements of `to` from as many of `from`: x forward, and y backward, which reads dy, too.
struct ActivationPiece {
  const std::byte* from = nullptr;
  const std::byte* dy = nullptr;
  std::byte* to = nullptr;
  std::int64_t elements = 0;
};
void activate(const ActivationProblem& problem, const ActivationPiece& piece);

}  // namespace omniconv::kernels
