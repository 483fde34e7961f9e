// Integer dot products on CPUs that have them (README.md).
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cpu_plan.h"
#include "operations/filter2d/integer_dot/integer_dot.h"

namespace omniconv::operations {
namespace {

class IntegerDotCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/integer_dot/cpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    if (std::string reason = integer_dot_refusal(task); !reason.empty()) return reason;
    if (!kernels::has_byte_dots()) return "this processor has no AVX-512 VNNI and VBMI instructions";
    const Filter2dProblem& problem = task.problem;
    if (problem.output != DataType::u8) return "serves u8 images with u8 results";
    if (problem.c > kernels::most_dot_channels)
      return fmt::format("serves at most {} channels", kernels::most_dot_channels);
    // Four taps of a row are one instruction, which serves as many sums as a multiply-add; twice that for weights of
    // two bytes. Pixels stay bytes, so that the rest costs a third of what it does elsewhere (docs/choosing.md).
    const kernels::ByteWeights bytes = byte_weights(task.weights);
    const double dots = static_cast<double>(bytes.r) * static_cast<double>(bytes.groups);
    return cpu_offer(task, device, CpuMethod::byte_dots, 9 + dots * (bytes.high.empty() ? 1.45 : 2.9),
                     direct_bound(task));
  }
};

}  // namespace

const Filter2dSolver& integer_dot_cpu() {
  static const IntegerDotCpu solver;
  return solver;
}

}  // namespace omniconv::operations
