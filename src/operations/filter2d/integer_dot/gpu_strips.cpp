// Integer dot products on OpenCL and CUDA devices by strips: a work item puts the bytes of four taps together for each
// element, once for all rows of the kernel, and adds integers.
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/integer_dot/integer_dot.h"
#include "operations/filter2d/strips.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t most_rows_and_columns = 9;

StripTunables tunables_for(const Filter2dTask& task, const devices::Device& device) {
  StripTunables t = byte_strip_tunables(task.problem, device);
  t.dots = has_lone_column(task.problem) ? 2 : 1;
  return fitted(task, t);
}

class IntegerDotGpuStrips final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/integer_dot/gpu-strips.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = integer_dot_refusal(task); !reason.empty()) return reason;
    if (!byte_weights(task.weights).high.empty())
      return "weights beyond a signed byte would take two dot products each, and those no less time than multiply-adds";
    const double dots = dots_of(task.problem);
    const double dot = device->facts().has_byte_dots ? strip_dot_operations : gpu_written_dot_operations;
    const double operations = device->info().is_gpu
                                  ? strip_dot_pixel_operations + dot * dots
                                  : cpu_strip_factor * (gpu_pixel_operations + gpu_written_dot_operations * dots);
    return strip_offer(task, device,
                       {.first = tunables_for(task, *device),
                        .most = most_rows_and_columns,
                        .operations = operations,
                        .bound = direct_bound(task)},
                       request);
  }
  std::span<const Tunable> tunables() const override { return strip_tunables(); }

 private:
  static double dots_of(const Filter2dProblem& problem) {
    const std::int64_t r = problem.r, s = problem.s, along = r * divide_up(s, kernels::dot_taps);
    const std::int64_t saved = has_lone_column(problem) ? r - divide_up(r, kernels::dot_taps) : 0;
    return static_cast<double>(along - saved);
  }
};

}  // namespace

const Filter2dSolver& integer_dot_gpu_strips() {
  static const IntegerDotGpuStrips solver;
  return solver;
}

}  // namespace omniconv::operations
