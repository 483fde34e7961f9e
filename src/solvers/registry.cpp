// The candidates, one line each, closed by the references.
#include <array>

#include "solvers/filter2d/candidates.h"

namespace omniconv::solvers {

std::span<const Filter2dSolver* const> filter2d_solvers() {
  static const std::array<const Filter2dSolver*, 15> solvers = {
      &box_cpu(),      &integer_dot_cpu(),   &separable_cpu(),     &separable_gpu(),     &separable_gpu_strips(),
      &rank_two_cpu(), &direct_cpu(),        &direct_gpu(),        &direct_gpu_strips(), &gradient_cpu(),
      &gradient_gpu(), &premultiplied_cpu(), &premultiplied_gpu(), &definition(),        &double_precision(),
  };
  return solvers;
}

}  // namespace omniconv::solvers
