// Dropout on OpenCL and CUDA devices.
#include <array>

#include "core/checked.h"
#include "embedded/dropout.kernel.h"
#include "operations/dropout/dropout.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128, quads = 2, of_group = 4 * quads * group;

std::vector<devices::Definition> definitions_of(const DropoutProblem& problem) {
  const std::string type = fmt::format("TYPE_{}", name(problem.type));
  return {{"TYPE", type}, {"OUTPUT", type}, {"GROUP", std::to_string(group)}, {"QUADS", std::to_string(quads)}};
}

class Plan final : public DropoutPlanBody {
 public:
  Plan(const DropoutProblem& problem, devices::Device& device)
      : DropoutPlanBody(problem),
        program_(device.build(std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) +
                                  std::string(kernels::philox()) + std::string(dropout_kernel),
                              definitions_of(problem))) {}
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Operand& x, const Operand& y, const DropoutNumbers& numbers,
              const Scalar& step) const override {
    const std::int64_t size = size_of(problem().type), elements = problem().n;
    const auto word = [](std::uint64_t bits) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits)); };
    launch_groups(divide_up(elements, of_group), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 12> arguments = {x.buffer.impl().get(),
                                                                 x.offset_bytes / size,
                                                                 y.buffer.impl().get(),
                                                                 y.offset_bytes / size,
                                                                 elements,
                                                                 first * of_group,
                                                                 word(numbers.threshold),
                                                                 static_cast<float>(numbers.scale),
                                                                 word(numbers.seed),
                                                                 word(numbers.seed >> 32),
                                                                 word(numbers.stream),
                                                                 step};
      sequence.launch(program_, "dropout", {{groups * group}, {group}}, arguments);
    });
  }

 private:
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public DropoutSolver {
 public:
  std::string_view id() const override { return "dropout/direct/gpu.1"; }
  Answer offer(const DropoutProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    constexpr double element = 25;  // a quarter of ten rounds, beside memory's traffic
    return Offer{
        .cost = {launch_cost(*device) + byte_cost(*device) * least_bytes(problem) +
                 element * static_cast<double>(problem.n)},
        .bound = dropout_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device); },
    };
  }
};

}  // namespace

const DropoutSolver& dropout_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
