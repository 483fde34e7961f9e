// Norms on OpenCL and CUDA devices.
#include <array>

#include "embedded/norm.kernel.h"
#include "operations/gpu_limits.h"
#include "operations/norm/norm.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = norm_chains / 4;

class Plan final : public NormPlanBody {
 public:
  Plan(const NormProblem& problem, devices::Device& device) : NormPlanBody(problem) {
    const std::string type = fmt::format("TYPE_{}", name(problem.type));
    const std::vector<devices::Definition> definitions = {
        {"TYPE", type},
        {"OUTPUT", type},
        {"ACCUMULATE_SUM", problem.accumulate ? "1" : "0"},
        {"GROUP", std::to_string(group)},
        {"ROUNDS", std::to_string(elements_of_norm_piece / norm_chains)}};
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::exact_root()) +
                                std::string(kernels::exact_division()) + std::string(norm_kernel),
                            definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const NormArrays& run) const override {
    const std::int64_t pieces = pieces_of(problem());
    const devices::Buffer* const sums = run.workspace.buffer.impl().get();
    const std::int64_t sums_offset = run.workspace.offset_bytes / 4;
    launch_groups(pieces, [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 6> arguments = {run.g.buffer.impl().get(),
                                                                run.g.offset_bytes / size_of(problem().type),
                                                                sums,
                                                                sums_offset,
                                                                problem().n,
                                                                first};
      sequence.launch(program_, "square_sums", {{groups * group}, {group}}, arguments);
    });
    const std::array<devices::KernelArgument, 9> arguments = {sums,
                                                              sums_offset,
                                                              pieces,
                                                              run.sum.buffer.impl().get(),
                                                              run.sum.offset_bytes / 4,
                                                              run.factor.buffer.impl().get(),
                                                              run.factor.offset_bytes / 4,
                                                              run.most,
                                                              run.scale};
    sequence.launch(program_, "clip_factor", {{group}, {group}}, arguments);
  }

 private:
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public NormSolver {
 public:
  std::string_view id() const override { return "norm/direct/gpu.1"; }
  Answer offer(const NormProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    if (std::string reason = long_norm_refusal(problem); !reason.empty()) return reason;
    return Offer{
        .cost = {2 * launch_cost(*device) + byte_cost(*device) * least_bytes(problem)},
        .bound = norm_bound(problem, norm_chain(problem)),
        .workspace_bytes = pieces_of(problem) * 4,
        .plan = [=] { return std::make_shared<Plan>(problem, *device); },
    };
  }
};

}  // namespace

const NormSolver& norm_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
