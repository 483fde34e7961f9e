// What solvers of dropout on the CPU share: pieces of the arrays, over the device's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "operations/dropout/dropout.h"

namespace omniconv::operations {

// So many elements, of which the first is element `first` of the whole: a multiple of `dropout_piece`.
struct DropoutPiece {
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t first = 0, elements = 0;
};
constexpr std::int64_t dropout_piece = 1 << 13;

using DropoutOfPiece = void(const DropoutProblem& problem, const DropoutNumbers& numbers, std::uint32_t step,
                            const DropoutPiece& piece);
std::shared_ptr<DropoutPlanBody> dropout_on_host(const DropoutProblem& problem, const DevicePointer& device,
                                                 DropoutOfPiece* drop);

}  // namespace omniconv::operations
