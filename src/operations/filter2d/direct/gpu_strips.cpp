// Direct filtering on OpenCL and CUDA devices by strips: a work item chains the taps of several elements side by side,
// down several rows, and widens each element that it reads once.
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/direct/direct.h"
#include "operations/filter2d/strips.h"

namespace omniconv::operations {
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
    t = {.ahead = cuda ? 2 : 3, .halo = 4, .group = cuda ? 64 : 128, .rows = 32, .rest = 8};
  // A processor takes a hundred times as long over denormal numbers as over others; a GPU does not.
  t.denormal = device.info().is_gpu && device.facts().has_denormals && denormals_are_exact(task);
  return fitted(task, t);
}

class DirectGpuStrips final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/gpu-strips.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = direct_refusal(task); !reason.empty()) return reason;
    if (task.weights.form == WeightForm::equal)
      return "equal weights are sums of pixels, and strips chain multiply-adds";
    const double taps = direct_operations(task);
    const double operations = device->info().is_gpu
                                  ? strip_pixel_operations + strip_tap_operations * taps
                                  : cpu_strip_factor * (gpu_pixel_operations + gpu_tap_operations * taps);
    return strip_offer(task, device,
                       {.first = tunables_for(task, *device),
                        .most = most_rows_and_columns,
                        .operations = operations,
                        .bound = direct_bound(task)},
                       request);
  }
  std::span<const Tunable> tunables() const override { return strip_tunables(); }
};

}  // namespace

const Filter2dSolver& direct_gpu_strips() {
  static const DirectGpuStrips solver;
  return solver;
}

}  // namespace omniconv::operations
