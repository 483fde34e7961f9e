// Separable filtering on OpenCL and CUDA devices by strips, in one launch: a work item chains along each row that it
// reads, and adds the result to the chains down the columns, in registers.
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cost.h"
#include "solvers/filter2d/separable/separable.h"
#include "solvers/filter2d/strips.h"

namespace omniconv::solvers {
namespace {

constexpr std::int64_t most_rows_and_columns = 15;

// What was fastest on an H100 for u8 (docs/measuring.md). Tall kernels leave registers for narrow strips alone.
StripTunables tunables_for(const Filter2dTask& task, const devices::Device& device) {
  const Filter2dProblem& problem = task.problem;
  StripTunables t = {.v = 4, .prefetch = 0, .rows = 48};
  if (device.kind() == devices::DeviceKind::cuda && problem.input == DataType::u8 && problem.r <= 9 &&
      strips_are_aligned(problem))
    t = {.v = 16, .ring = 1, .group = 256, .rows = 96, .rest = 32};
  return fitted(task, t);
}

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/separable/gpu.2"; }
  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (const std::string reason = gpu_refusal(task, device); !reason.empty()) return reason;
    if (const std::string reason = separable_refusal(task); !reason.empty()) return reason;
    return strip_refusal(task, tunables_for(task, device), most_rows_and_columns);
  }
  ErrorBound bound(const Filter2dTask& task) const override { return separable_bound(task); }
  double operations(const Filter2dTask& task, const devices::Device& device) const override {
    const auto taps = static_cast<double>(task.weights.r + task.weights.s);
    if (!device.info().is_gpu) return separable_cpu_strip_factor * (gpu_pixel_operations + gpu_tap_operations * taps);
    return strip_pixel_operations + separable_strip_tap_operations * taps;
  }
  std::int64_t workspace_bytes(const Filter2dTask&, const devices::Device&) const override { return 0; }
  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return make_strip_plan(task, *device, tunables_for(task, *device), true);
  }
};

}  // namespace

const Filter2dSolver& separable_gpu_strips() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
