// The candidates, one line each, closed by the reference.
#include <array>

#include "operations/pool2d/pool2d.h"

namespace omniconv::operations {

std::span<const Solver* const> pool2d_solvers() {
  static const std::array<const Solver*, 3> solvers = {
      &pool2d_direct_cpu(),  //
      &pool2d_direct_gpu(),  //
      &pool2d_reference(),   //
  };
  return solvers;
}

}  // namespace omniconv::operations
