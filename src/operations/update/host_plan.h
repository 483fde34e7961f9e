// What solvers of update on the CPU share: pieces of the arrays, over the device's threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "operations/update/update.h"

namespace omniconv {

// So many elements of each array; null where the problem has none.
struct UpdatePiece {
  const std::byte* g = nullptr;
  std::byte *w = nullptr, *m = nullptr, *v = nullptr, *copy = nullptr;
  std::int64_t elements = 0;
  double factor = 1;  // of the type of w
};

namespace operations {

// How a solver changes a piece, of guarded whether all g * factor of it are finite; and `copy` from w.
struct UpdateByPieces {
  bool (*update)(const UpdateProblem& problem, const UpdatePiece& piece, std::span<const double> numbers);
  void (*copy)(const UpdateProblem& problem, const UpdatePiece& piece);
};
std::shared_ptr<UpdatePlanBody> update_on_host(const UpdateProblem& problem, const DevicePointer& device,
                                               const UpdateByPieces& by_pieces);

}  // namespace operations
}  // namespace omniconv
