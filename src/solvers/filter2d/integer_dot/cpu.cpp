// Integer dot products on CPUs that have them (README.md).
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cpu_plan.h"
#include "solvers/filter2d/integer_dot/integer_dot.h"

namespace omniconv::solvers {
namespace {

class IntegerDotCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/integer_dot/cpu.1"; }

  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (device.kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    if (const std::string reason = integer_dot_refusal(task); !reason.empty()) return reason;
    if (!kernels::has_byte_dots()) return "this processor has no AVX-512 VNNI and VBMI instructions";
    const Filter2dProblem& problem = task.problem;
    if (problem.output != DataType::u8) return "serves u8 images with u8 results";
    if (problem.c > kernels::most_dot_channels)
      return "serves at most " + std::to_string(kernels::most_dot_channels) + " channels";
    return {};
  }

  ErrorBound bound(const Filter2dTask& task) const override { return direct_bound(task); }

  // Four taps of a row are one instruction, which serves as many sums as a multiply-add; twice that for weights of two
  // bytes. Pixels stay bytes, so that the rest costs a third of what it does elsewhere (docs/choosing.md).
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    const kernels::ByteWeights bytes = byte_weights(task.weights);
    const double dots = static_cast<double>(bytes.r) * static_cast<double>(bytes.groups);
    return 9 + dots * (bytes.high.empty() ? 1.45 : 2.9);
  }

  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const override {
    return cpu_workspace_bytes(task, device, CpuMethod::byte_dots);
  }

  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return make_cpu_plan(task, device, CpuMethod::byte_dots);
  }
};

}  // namespace

const Filter2dSolver& integer_dot_cpu() {
  static const IntegerDotCpu solver;
  return solver;
}

}  // namespace omniconv::solvers
