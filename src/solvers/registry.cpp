// The candidates, one line each, closed by the references.
#include <array>

#include "solvers/filter2d/candidates.h"

namespace omniconv::solvers {

std::span<const Filter2dSolver* const> filter2d_solvers() {
  static const std::array<const Filter2dSolver*, 7> solvers = {
      &integer_dot_cpu(), &separable_cpu(), &separable_gpu(),    &direct_cpu(),
      &direct_gpu(),      &definition(),    &double_precision(),
  };
  return solvers;
}

}  // namespace omniconv::solvers
