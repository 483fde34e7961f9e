// The candidates, one line each, closed by the references.
#include <array>

#include "operations/filter2d/candidates.h"

namespace omniconv::operations {

std::span<const Solver* const> filter2d_solvers() {
  static const std::array<const Solver*, 21> solvers = {
      &box_cpu(),
      &box_gpu(),
      &integer_dot_cpu(),
      &separable_cpu(),
      &separable_gpu_fused(),
      &separable_gpu(),
      &rank_two_cpu(),
      &direct_cpu(),
      &direct_gpu_strips(),
      &integer_dot_gpu_strips(),
      &direct_gpu_tiles(),
      &direct_gpu(),
      &gradient_cpu(),
      &gradient_gpu_strips(),
      &gradient_gpu(),
      &premultiplied_cpu(),
      &premultiplied_gpu(),
      &fft_cpu(),
      &fft_gpu(),
      &definition(),
      &double_precision(),
  };
  return solvers;
}

}  // namespace omniconv::operations
