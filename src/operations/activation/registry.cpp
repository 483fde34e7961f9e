// The candidates, one line each, closed by the reference.
#include <array>

#include "operations/activation/activation.h"

namespace omniconv::operations {

std::span<const Solver* const> activation_solvers() {
  static const std::array<const Solver*, 4> solvers = {
      &activation_direct_cpu(),  //
      &activation_direct_gpu(),  //
      &activation_rungs_gpu(),   //
      &activation_reference(),   //
  };
  return solvers;
}

}  // namespace omniconv::operations
