#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cpu_plan.h"
#include "solvers/filter2d/premultiplied/premultiplied.h"

namespace omniconv::solvers {
namespace {

CpuMethod method(const Filter2dTask& task) {
  return premultiplied_rows_first(task) ? CpuMethod::rows_first : CpuMethod::chains;
}

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/premultiplied/cpu.1"; }

  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (device.kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    return premultiplied_refusal(task);
  }

  ErrorBound bound(const Filter2dTask& task) const override { return premultiplied_bound(task); }
  // Beside the chains: products with opacity, two divisions, and one pass more over the sums.
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    constexpr double divisions = 60;
    const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
    const double taps = premultiplied_rows_first(task) ? 2 * r + 3.5 * s : 1.15 * r * s;
    return cpu_pixel_operations(task) + divisions + cpu_chain_operations(task) * taps;
  }

  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const override {
    return cpu_workspace_bytes(task, device, method(task));
  }

  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return make_cpu_plan(task, device, method(task));
  }
};

}  // namespace

const Filter2dSolver& premultiplied_cpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
