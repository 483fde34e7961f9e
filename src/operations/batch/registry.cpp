// The candidates, one line each, closed by the reference.
#include <array>

#include "operations/batch/batch.h"

namespace omniconv::operations {

std::span<const Solver* const> batch_solvers() {
  static const std::array<const Solver*, 3> solvers = {
      &batch_direct_cpu(),  //
      &batch_direct_gpu(),  //
      &batch_reference(),   //
  };
  return solvers;
}

}  // namespace omniconv::operations
