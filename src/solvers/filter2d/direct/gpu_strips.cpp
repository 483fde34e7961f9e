// Direct filtering on OpenCL and CUDA devices by strips: a work item chains the taps of several elements side by side,
// down several rows, and widens each element that it reads once.
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cost.h"
#include "solvers/filter2d/direct/direct.h"
#include "solvers/filter2d/strips.h"

namespace omniconv::solvers {
namespace {

constexpr std::int64_t most_rows_and_columns = 9;

// What was fastest on an H200 (README.md).
StripTunables tunables_for(const Filter2dTask& task, const devices::Device& device) {
  const Filter2dProblem& problem = task.problem;
  const bool cuda = device.kind() == devices::DeviceKind::cuda;
  StripTunables t = {.prefetch = 0, .rows = 16, .rest = 8};
  if (problem.input == DataType::u8)
    t = byte_strip_tunables(problem, device);
  else if (size_of(problem.input) == 2)
    t = {.ahead = 3, .halo = 4, .ring = cuda ? 1 : 0, .group = cuda ? 64 : 128, .rows = cuda ? 16 : 32, .rest = 8};
  // A processor takes a hundred times as long over denormal numbers as over others; a GPU does not.
  t.denormal = device.info().is_gpu && device.has_denormals() && denormals_are_exact(task);
  return fitted(task, t);
}

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/gpu-strips.1"; }
  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (const std::string reason = gpu_refusal(task, device); !reason.empty()) return reason;
    if (const std::string reason = direct_refusal(task); !reason.empty()) return reason;
    if (task.weights.form == WeightForm::equal)
      return "equal weights are sums of pixels, and strips chain multiply-adds";
    return strip_refusal(task, tunables_for(task, device), most_rows_and_columns);
  }
  ErrorBound bound(const Filter2dTask& task) const override { return direct_bound(task); }
  double operations(const Filter2dTask& task, const devices::Device& device) const override {
    const double taps = direct_operations(task);
    if (!device.info().is_gpu) return cpu_strip_factor * (gpu_pixel_operations + gpu_tap_operations * taps);
    return strip_pixel_operations + strip_tap_operations * taps;
  }
  std::int64_t workspace_bytes(const Filter2dTask&, const devices::Device&) const override { return 0; }
  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return make_strip_plan(task, *device, tunables_for(task, *device));
  }
};

}  // namespace

const Filter2dSolver& direct_gpu_strips() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
