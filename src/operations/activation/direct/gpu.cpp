// Activations on OpenCL and CUDA devices.
#include "core/checked.h"
#include "embedded/activation.kernel.h"
#include "embedded/activation_element.kernel.h"
#include "operations/activation/activation.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128, quads = 4;

std::vector<devices::Definition> definitions_of(const ActivationProblem& problem) {
  const std::string type = fmt::format("TYPE_{}", name(problem.type));
  const char* const function = problem.function == Activation::relu      ? "FUNCTION_relu"
                               : problem.function == Activation::sigmoid ? "FUNCTION_sigmoid"
                                                                         : "FUNCTION_tanh";
  return {{"TYPE", type},
          {"OUTPUT", type},
          {"FUNCTION", function},
          {"BACKWARD", problem.backward ? "1" : "0"},
          {"GROUP", std::to_string(group)},
          {"QUADS", std::to_string(quads)}};
}

class Plan final : public ActivationPlanBody {
 public:
  Plan(const ActivationProblem& problem, devices::Device& device)
      : ActivationPlanBody(problem),
        program_(device.build(std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) +
                                  std::string(activation_element_kernel) + std::string(activation_kernel),
                              definitions_of(problem))) {}
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const ActivationRun& run) const override {
    const ActivationProblem& p = problem();
    const Operand &given = p.backward ? run.y : run.x, &dy = p.backward ? run.dy : given,
                  &result = p.backward ? run.x : run.y;
    const std::int64_t size = size_of(p.type), elements = elements_of(p), of_group = 4 * quads * group;
    launch_groups(divide_up(elements, of_group), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 8> arguments = {given.buffer.impl().get(),
                                                                given.offset_bytes / size,
                                                                dy.buffer.impl().get(),
                                                                dy.offset_bytes / size,
                                                                result.buffer.impl().get(),
                                                                result.offset_bytes / size,
                                                                elements,
                                                                first * of_group};
      sequence.launch(program_, "activation", {{groups * group}, {group}}, arguments);
    });
  }

 private:
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public ActivationSolver {
 public:
  std::string_view id() const override { return "activation/direct/gpu.1"; }
  Answer offer(const ActivationProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    const double element = problem.function == Activation::relu || problem.backward ? 4 : 30;
    return Offer{
        .cost = {launch_cost(*device) + byte_cost(*device) * least_bytes(problem) +
                 element * static_cast<double>(elements_of(problem))},
        .bound = activation_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device); },
    };
  }
};

}  // namespace

const ActivationSolver& activation_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
