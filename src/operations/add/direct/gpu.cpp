// Sums with shortcuts on OpenCL and CUDA devices.
#include <algorithm>
#include <array>

#include "core/checked.h"
#include "embedded/add.kernel.h"
#include "embedded/add_element.kernel.h"
#include "operations/add/add.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128, quads = 2, of_group = 4 * quads * group;

std::vector<devices::Definition> definitions_of(const AddProblem& problem) {
  constexpr std::int64_t most_narrow = std::int64_t{1} << 30;
  const AddShape shape(problem);
  const std::int64_t most = problem.n * std::max(shape.result.of_image(), shape.other.of_image());
  const bool has_fours = shape.nhwc && problem.c % 4 == 0 && problem.k % 4 == 0 && shape.before % 4 == 0;
  const std::string type = fmt::format("TYPE_{}", name(problem.type));
  const auto flag = [](bool is_so) { return std::string(is_so ? "1" : "0"); };
  return {{"TYPE", type},
          {"OUTPUT", type},
          {"BACKWARD", flag(problem.backward)},
          {"NHWC", flag(shape.nhwc)},
          {"RELU", flag(problem.relu)},
          {"STRIDE", std::to_string(std::min(problem.stride, std::max(problem.h, problem.w)))},
          {"PLAIN", flag(shape.is_plain())},
          {"FOURS", flag(has_fours)},
          {"index_t", most < most_narrow ? "int" : "long"},
          {"GROUP", std::to_string(group)},
          {"QUADS", std::to_string(quads)}};
}

class Plan final : public AddPlanBody {
 public:
  Plan(const AddProblem& problem, devices::Device& device)
      : AddPlanBody(problem),
        program_(device.build(std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) +
                                  std::string(add_element_kernel) + std::string(add_kernel),
                              definitions_of(problem))) {}
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const AddArrays& run) const override {
    const AddShape shape(problem());
    const std::int64_t size = size_of(problem().type), elements = elements_of_result(problem());
    launch_groups(divide_up(elements, of_group), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 15> arguments = {run.base.buffer.impl().get(),
                                                                 run.base.offset_bytes / size,
                                                                 run.other.buffer.impl().get(),
                                                                 run.other.offset_bytes / size,
                                                                 run.result.buffer.impl().get(),
                                                                 run.result.offset_bytes / size,
                                                                 elements,
                                                                 first * of_group,
                                                                 shape.result.channels,
                                                                 shape.result.rows,
                                                                 shape.result.columns,
                                                                 shape.other.channels,
                                                                 shape.other.rows,
                                                                 shape.other.columns,
                                                                 shape.before};
      sequence.launch(program_, "add", {{groups * group}, {group}}, arguments);
    });
  }

 private:
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public AddSolver {
 public:
  std::string_view id() const override { return "add/direct/gpu.1"; }
  Answer offer(const AddProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    const double element = AddShape(problem).is_plain() ? 4 : 30;
    return Offer{
        .cost = {launch_cost(*device) + byte_cost(*device) * least_bytes(problem) +
                 element * static_cast<double>(elements_of_result(problem))},
        .bound = add_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device); },
    };
  }
};

}  // namespace

const AddSolver& add_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
