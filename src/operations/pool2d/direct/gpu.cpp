#include "operations/pool2d/pool2d.h"
namespace omniconv::operations {
class DirectGpu final : public Pool2dSolver {
 public:
  std::string_view id() const override { return "pool2d/direct/gpu.1"; }
  Answer offer(const Pool2dProblem&, const DevicePointer&, const SolverOptions&) const override { return "not yet"; }
};
const Pool2dSolver& pool2d_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}
}  // namespace omniconv::operations
