#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/cpu_plan.h"
#include "operations/filter2d/separable/separable.h"

namespace omniconv::operations {
namespace {

class SeparableCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/separable/cpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    if (std::string reason = separable_refusal(task); !reason.empty()) return reason;
    // A load serves one tap of a chain along a row, but up to four output rows of a chain down a column.
    const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
    const double operations = cpu_pixel_operations(task) + cpu_chain_operations(task) * (2 * r + 3.5 * s);
    return cpu_offer(task, device, CpuMethod::rows_first, operations, separable_bound(task));
  }
};

}  // namespace

const Filter2dSolver& separable_cpu() {
  static const SeparableCpu solver;
  return solver;
}

}  // namespace omniconv::operations
