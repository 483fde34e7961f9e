// Magnitudes on OpenCL and CUDA devices by strips: both chains of an element side by side, from one reading of the
// input.
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/gradient/gradient.h"
#include "solvers/filter2d/strips.h"

namespace omniconv::solvers {
namespace {

constexpr std::int64_t most_rows_and_columns = 5;

StripTunables tunables_for(const Filter2dTask& task) {
  return fitted(task, {.v = task.problem.r <= 3 ? 8 : 4, .prefetch = 2});
}

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/gradient/gpu-strips.1"; }
  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (const std::string reason = gpu_refusal(task, device); !reason.empty()) return reason;
    if (const std::string reason = gradient_refusal(task); !reason.empty()) return reason;
    if (task.weights.form == WeightForm::equal || task.second->form == WeightForm::equal)
      return "equal weights are sums of pixels, and strips chain multiply-adds";
    return strip_refusal(task, tunables_for(task), most_rows_and_columns);
  }
  ErrorBound bound(const Filter2dTask& task) const override { return gradient_bound(task); }
  // (A single kernel is refused, and needs a number only for its place in lists.)
  double operations(const Filter2dTask& task, const devices::Device& device) const override {
    const Weights& second = task.second ? *task.second : task.weights;
    const double taps = kernel_taps(task, task.weights) + kernel_taps(task, second);
    if (!device.info().is_gpu) return cpu_strip_factor * (gpu_pixel_operations + gpu_tap_operations * taps);
    return root_operations + strip_pixel_operations + strip_tap_operations * taps;
  }
  std::int64_t workspace_bytes(const Filter2dTask&, const devices::Device&) const override { return 0; }
  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return make_strip_plan(task, *device, tunables_for(task));
  }
};

}  // namespace

const Filter2dSolver& gradient_gpu_strips() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
