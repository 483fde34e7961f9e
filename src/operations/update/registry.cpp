// The candidates, one line each, closed by the reference.
#include <array>

#include "operations/update/update.h"

namespace omniconv::operations {

std::span<const Solver* const> update_solvers() {
  static const std::array<const Solver*, 4> solvers = {
      &update_direct_cpu(),  //
      &update_direct_gpu(),  //
      &update_rungs_gpu(),   //
      &update_reference(),   //
  };
  return solvers;
}

}  // namespace omniconv::operations
