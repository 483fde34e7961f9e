#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cost.h"
#include "solvers/filter2d/cpu_plan.h"
#include "solvers/filter2d/direct/direct.h"

namespace omniconv::solvers {
namespace {

class DirectCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/cpu.1"; }

  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (device.kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    return direct_refusal(task);
  }

  ErrorBound bound(const Filter2dTask& task) const override { return direct_bound(task); }
  // A chain reaches seven eighths of the multiply-add peak.
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    return cpu_pixel_operations(task) + 1.15 * cpu_chain_operations(task) * direct_operations(task);
  }

  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const override {
    return cpu_workspace_bytes(task, device, CpuMethod::chains);
  }

  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return make_cpu_plan(task, device, CpuMethod::chains);
  }
};

}  // namespace

const Filter2dSolver& direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace omniconv::solvers
