// Losses on OpenCL and CUDA devices.
#include <algorithm>
#include <bit>

#include "core/checked.h"
#include "embedded/loss.kernel.h"
#include "operations/gpu_limits.h"
#include "operations/loss/loss.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 256, most_quads = 4;
constexpr std::int64_t longest_row = std::int64_t{1} << 30;  // whose places, and those a step behind, have 32 bits

// Rows as the kernel takes them.
struct Rows {
  std::int64_t length = 0, count = 0;
  std::int64_t team = group, quads = most_quads;  // work items of a row, and quads of one at once

  std::int64_t step() const { return 4 * quads * team; }
  bool is_short() const { return length <= step(); }
};

// A work item has one quad of a row of up to 32 of them, and else as many as it can keep. A gradient alone whose
// elements depend on nothing beside them has no rows but what a group makes.
Rows rows_for(const LossProblem& problem) {
  constexpr std::int64_t warp = 32;
  Rows rows{problem.c, problem.n};
  if (problem.loss == Loss::mse && !has_losses(problem)) {
    rows.length = rows.step(), rows.count = divide_up(elements_of(problem), rows.length);
    return rows;
  }
  const std::int64_t all = divide_up(problem.c, 4);
  const std::int64_t wanted = all <= warp ? all : std::clamp(divide_up(all, most_quads), warp, group);
  rows.team = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(wanted)));
  rows.quads = std::min(divide_up(all, rows.team), most_quads);
  return rows;
}

std::vector<devices::Definition> definitions_of(const LossProblem& problem, const Rows& rows) {
  const std::string type = fmt::format("TYPE_{}", name(problem.type));
  return {{"TYPE", type},
          {"OUTPUT", type},
          {"LOSS", problem.loss == Loss::softmax ? "LOSS_softmax" : "LOSS_mse"},
          {"BACKWARD", problem.backward ? "1" : "0"},
          {"SUMS", problem.sums ? "1" : "0"},
          {"TEAM", std::to_string(rows.team)},
          {"IS_SHORT", rows.is_short() ? "1" : "0"},
          {"GROUP", std::to_string(group)},
          {"QUADS", std::to_string(rows.quads)}};
}

class Plan final : public LossPlanBody {
 public:
  Plan(const LossProblem& problem, devices::Device& device)
      : LossPlanBody(problem),
        rows_(rows_for(problem)),
        program_(device.build(std::string(kernels::exact_division()) + std::string(kernels::gemm_elements()) +
                                  std::string(kernels::stored_elements()) + std::string(loss_kernel),
                              definitions_of(problem, rows_))) {}
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const LossArrays& arrays) const override {
    const LossProblem& p = problem();
    const std::int64_t size = size_of(p.type), of_target = p.loss == Loss::softmax ? size_of(DataType::s32) : size,
                       of_group = group / rows_.team;
    const Operand &y = has_losses(p) ? arrays.y : arrays.dx, &dx = p.backward ? arrays.dx : arrays.y;  // else not used
    launch_groups(divide_up(rows_.count, of_group), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 13> arguments = {arrays.x.buffer.impl().get(),
                                                                 arrays.x.offset_bytes / size,
                                                                 arrays.target.buffer.impl().get(),
                                                                 arrays.target.offset_bytes / of_target,
                                                                 y.buffer.impl().get(),
                                                                 y.offset_bytes / size_of(DataType::f32),
                                                                 dx.buffer.impl().get(),
                                                                 dx.offset_bytes / size,
                                                                 elements_of(p),
                                                                 static_cast<std::int32_t>(rows_.length),
                                                                 first * of_group,
                                                                 static_cast<float>(2.0 / static_cast<double>(p.c)),
                                                                 arrays.scale};
      sequence.launch(program_, "loss", {{groups * group}, {group}}, arguments);
    });
  }

 private:
  Rows rows_;
  std::shared_ptr<devices::Program> program_;
};

// Along a work item's elements, and then over the team's sums, sixteen at a time.
double chain_of(const Rows& rows) {
  const std::int64_t few = std::min<std::int64_t>(rows.team, 16);
  return static_cast<double>(divide_up(rows.length, rows.step()) * 4 * rows.quads + rows.team / few + few);
}

class DirectGpu final : public LossSolver {
 public:
  std::string_view id() const override { return "loss/direct/gpu.1"; }
  Answer offer(const LossProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (problem.c > longest_row)
      return fmt::format("a row has at most {} elements here, not {}", longest_row, problem.c);
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    const Rows rows = rows_for(problem);
    // A row that a work item cannot keep is read again for its gradient.
    const double again = problem.loss == Loss::softmax && problem.backward && !rows.is_short()
                             ? static_cast<double>(elements_of(problem) * size_of(problem.type))
                             : 0;
    const double element = problem.loss == Loss::mse ? 4 : problem.backward ? 40 : 25;
    return Offer{
        .cost = {launch_cost(*device) + byte_cost(*device) * (least_bytes(problem) + again) +
                 element * static_cast<double>(elements_of(problem))},
        .bound = loss_bound(problem, chain_of(rows), static_cast<double>(divide_up(rows.length, rows.step()))),
        .plan = [=] { return std::make_shared<Plan>(problem, *device); },
    };
  }
};

}  // namespace

const LossSolver& loss_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
