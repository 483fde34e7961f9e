// Magnitudes on OpenCL and CUDA devices by strips: both chains of an element side by side, from one reading of the
// input.
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/gradient/gradient.h"
#include "operations/filter2d/strips.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t most_rows_and_columns = 5;

StripTunables tunables_for(const Filter2dTask& task) {
  return fitted(task, {.v = task.problem.r <= 3 ? 8 : 4, .prefetch = 2});
}

class GradientGpuStrips final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/gradient/gpu-strips.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = gradient_refusal(task); !reason.empty()) return reason;
    if (task.weights.form == WeightForm::equal || task.second->form == WeightForm::equal)
      return "equal weights are sums of pixels, and strips chain multiply-adds";
    const double taps = kernel_taps(task, task.weights) + kernel_taps(task, *task.second);
    const double operations = device->info().is_gpu
                                  ? root_operations + strip_pixel_operations + strip_tap_operations * taps
                                  : cpu_strip_factor * (gpu_pixel_operations + gpu_tap_operations * taps);
    return strip_offer(task, device,
                       {.first = tunables_for(task),
                        .most = most_rows_and_columns,
                        .operations = operations,
                        .bound = gradient_bound(task)},
                       request);
  }
  std::span<const Tunable> tunables() const override { return strip_tunables(); }
};

}  // namespace

const Filter2dSolver& gradient_gpu_strips() {
  static const GradientGpuStrips solver;
  return solver;
}

}  // namespace omniconv::operations
