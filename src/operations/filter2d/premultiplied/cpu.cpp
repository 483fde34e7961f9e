#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cpu_plan.h"
#include "operations/filter2d/premultiplied/premultiplied.h"

namespace omniconv::operations {
namespace {

CpuMethod method(const Filter2dTask& task) {
  return premultiplied_rows_first(task) ? CpuMethod::rows_first : CpuMethod::chains;
}

class PremultipliedCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/premultiplied/cpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    if (std::string reason = premultiplied_refusal(task); !reason.empty()) return reason;
    // Beside the chains: products with opacity, two divisions, and one pass more over the sums.
    constexpr double divisions = 60;
    const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
    const double taps = premultiplied_rows_first(task) ? 2 * r + 3.5 * s : 1.15 * r * s;
    return cpu_offer(task, device, method(task),
                     cpu_pixel_operations(task) + divisions + cpu_chain_operations(task) * taps,
                     premultiplied_bound(task));
  }
};

}  // namespace

const Filter2dSolver& premultiplied_cpu() {
  static const PremultipliedCpu solver;
  return solver;
}

}  // namespace omniconv::operations
