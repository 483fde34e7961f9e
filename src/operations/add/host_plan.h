// What solvers of add on the CPU share: pieces of the result, over the device's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "operations/add/add.h"

namespace omniconv::operations {

// So many elements of the result, from `first` on; the arrays are whole.
struct AddPiece {
  std::byte* result = nullptr;
  const std::byte *base = nullptr, *other = nullptr;
  std::int64_t first = 0, elements = 0;
};

using AddOfPiece = void(const AddProblem& problem, const AddPiece& piece);
std::shared_ptr<AddPlanBody> add_on_host(const AddProblem& problem, const DevicePointer& device, AddOfPiece* add);

}  // namespace omniconv::operations
