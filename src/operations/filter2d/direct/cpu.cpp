#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/cpu_plan.h"
#include "operations/filter2d/direct/direct.h"

namespace omniconv::operations {
namespace {

class DirectCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/cpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    if (std::string reason = direct_refusal(task); !reason.empty()) return reason;
    // A chain reaches seven eighths of the multiply-add peak.
    const double operations = cpu_pixel_operations(task) + 1.15 * cpu_chain_operations(task) * direct_operations(task);
    return cpu_offer(task, device, CpuMethod::chains, operations, direct_bound(task));
  }
};

}  // namespace

const Filter2dSolver& direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::operations
