// Updates on OpenCL and CUDA devices.
#include <array>

#include "core/checked.h"
#include "embedded/update.kernel.h"
#include "embedded/update_element.kernel.h"
#include "operations/gpu_limits.h"
#include "operations/update/update.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128, quads = 2, of_group = 4 * quads * group;

std::vector<devices::Definition> definitions_of(const UpdateProblem& problem) {
  using Rule = UpdateProblem::Rule;
  const std::string type = fmt::format("TYPE_{}", name(problem.type));
  const char* const rule = problem.rule == Rule::sgd        ? "RULE_sgd"
                           : problem.rule == Rule::nesterov ? "RULE_nesterov"
                                                            : "RULE_adam";
  return {{"TYPE", type},
          {"OUTPUT", type},
          {"RULE", rule},
          {"SCALED", problem.scaled ? "1" : "0"},
          {"GUARDED", problem.guarded ? "1" : "0"},
          {"GROUP", std::to_string(group)},
          {"QUADS", std::to_string(quads)}};
}

class Plan final : public UpdatePlanBody {
 public:
  Plan(const UpdateProblem& problem, devices::Device& device)
      : UpdatePlanBody(problem),
        program_(device.build(std::string(kernels::gemm_elements()) + std::string(kernels::exact_root()) +
                                  std::string(kernels::exact_division()) + std::string(update_element_kernel) +
                                  std::string(update_kernel),
                              definitions_of(problem))) {}
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const UpdateArrays& run, std::span<const Scalar> numbers,
              const Scalar& number) const override {
    const std::int64_t size = size_of(problem().type), elements = problem().n;
    const Operand &v = run.v.buffer ? run.v : run.m, &copy = run.copy.buffer ? run.copy : run.g,
                  &factor = run.factor.buffer ? run.factor : run.w, &stop = run.stop.buffer ? run.stop : run.m;
    launch_groups(divide_up(elements, of_group), [&](std::int64_t first, std::int64_t groups) {
      std::array<devices::KernelArgument, 17 + most_update_numbers> arguments = {run.g.buffer.impl().get(),
                                                                                 run.g.offset_bytes / size,
                                                                                 run.w.buffer.impl().get(),
                                                                                 run.w.offset_bytes / 4,
                                                                                 run.m.buffer.impl().get(),
                                                                                 run.m.offset_bytes / 4,
                                                                                 v.buffer.impl().get(),
                                                                                 v.offset_bytes / 4,
                                                                                 copy.buffer.impl().get(),
                                                                                 copy.offset_bytes / size,
                                                                                 factor.buffer.impl().get(),
                                                                                 factor.offset_bytes / 4,
                                                                                 stop.buffer.impl().get(),
                                                                                 stop.offset_bytes / 4,
                                                                                 elements,
                                                                                 first * of_group,
                                                                                 number};
      for (std::size_t i = 0; i < numbers.size(); ++i) arguments[17 + i] = numbers[i];
      sequence.launch(program_, "update", {{groups * group}, {group}}, std::span(arguments).first(17 + numbers.size()));
    });
  }

 private:
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public UpdateSolver {
 public:
  std::string_view id() const override { return "update/direct/gpu.1"; }
  Answer offer(const UpdateProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    const double element = problem.rule == UpdateProblem::Rule::adam ? 40 : 10;
    return Offer{
        .cost = {launch_cost(*device) + byte_cost(*device) * least_bytes(problem) +
                 element * static_cast<double>(problem.n)},
        .bound = update_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device); },
    };
  }
};

}  // namespace

const UpdateSolver& update_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
