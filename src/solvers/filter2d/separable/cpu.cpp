#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cost.h"
#include "solvers/filter2d/cpu_plan.h"
#include "solvers/filter2d/separable/separable.h"

namespace omniconv::solvers {
namespace {

class SeparableCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/separable/cpu.1"; }

  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (device.kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    return separable_refusal(task);
  }

  ErrorBound bound(const Filter2dTask& task) const override { return separable_bound(task); }
  // A load serves one tap of a chain along a row, but up to four output rows of a chain down a column.
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
    return cpu_pixel_operations(task) + cpu_chain_operations(task) * (2 * r + 3.5 * s);
  }

  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const override {
    return cpu_workspace_bytes(task, device, CpuMethod::rows_first);
  }

  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return make_cpu_plan(task, device, CpuMethod::rows_first);
  }
};

}  // namespace

const Filter2dSolver& separable_cpu() {
  static const SeparableCpu solver;
  return solver;
}

}  // namespace omniconv::solvers
