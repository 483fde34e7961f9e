// Products of matrices inside solvers whose transforms are followed by one at every point or bin.
#pragma once

#include "operations/gemm/gemm.h"

namespace omniconv::operations {

// Of those that use fused multiply-adds alone the solver of least cost, with its offer; none where none serves.
struct GpuProduct {
  const GemmSolver* solver = nullptr;
  Offer offer = {};
};
inline GpuProduct best_gpu_product(const GemmTask& task, const DevicePointer& device) {
  GpuProduct best;
  for (const Solver* const solver : gemm_solvers()) {
    if (solver->role() == SolverRole::reference) continue;
    const auto* const gemm = static_cast<const GemmSolver*>(solver);
    const Answer answer = gemm->offer(task, device, {});
    const Offer* const offer = answer.offer();
    if (offer == nullptr || !offer->uses_only_fma) continue;
    if (best.solver == nullptr || offer->cost.multiply_adds < best.offer.cost.multiply_adds) best = {gemm, *offer};
  }
  return best;
}

}  // namespace omniconv::operations
