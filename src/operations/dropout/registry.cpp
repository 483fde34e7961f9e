// The candidates, one line each, closed by the reference.
#include <array>

#include "operations/dropout/dropout.h"

namespace omniconv::operations {

std::span<const Solver* const> dropout_solvers() {
  static const std::array<const Solver*, 3> solvers = {
      &dropout_direct_cpu(),  //
      &dropout_direct_gpu(),  //
      &dropout_reference(),   //
  };
  return solvers;
}

}  // namespace omniconv::operations
