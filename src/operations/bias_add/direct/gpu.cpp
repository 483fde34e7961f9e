// Biases on OpenCL and CUDA devices.
#include <algorithm>
#include <bit>

#include "core/checked.h"
#include "embedded/bias_add.kernel.h"
#include "operations/bias_add/bias_add.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128, quads = 4;

// How channels' sums are cut: groups for so many parts of each channel's positions, which a second launch adds up.
struct Cut {
  std::int64_t lanes = 1;  // of sum_columns
  std::int64_t parts = 1;

  Cut(const BiasAddProblem& p, const devices::Device& device, std::int64_t workspace_limit) {
    // A group reads so much while a second launch begins and ends: through OpenCL more.
    const bool waits_long = device.kind() == devices::DeviceKind::opencl && device.info().is_gpu;
    const std::int64_t bytes_of_group = waits_long ? 128 << 10 : 48 << 10, least_lanes = waits_long ? 8 : 32;
    constexpr std::int64_t groups_of_unit = 8, most_parts = 256, most_lanes = 32;
    const ChannelPlanes planes(p);
    std::int64_t groups = p.c, columns = 1;
    if (planes.inner == 1) {
      const auto quads_of_row = static_cast<std::uint64_t>(divide_up(p.c, 4));
      lanes = std::min(static_cast<std::int64_t>(std::bit_ceil(quads_of_row)), most_lanes);
      columns = p.c % 4 == 0 ? 4 * lanes : lanes;
      // Rows of fewer columns are more groups, rather than parts.
      for (; lanes > least_lanes && planes.positions() * columns * size_of(p.type) > bytes_of_group; lanes /= 2)
        columns /= 2;
      groups = divide_up(p.c, columns);
    }
    const std::int64_t bytes = divide_up(planes.positions() * columns * size_of(p.type), bytes_of_group),
                       wanted = divide_up(groups_of_unit * std::max(device.info().compute_units, 1), groups);
    parts = std::clamp<std::int64_t>(std::min(bytes, wanted), 1, most_parts);
    if (workspace_limit >= 0 && workspace_bytes(p) > workspace_limit) parts = 1;
  }
  std::int64_t workspace_bytes(const BiasAddProblem& p) const { return parts > 1 ? parts * p.c * 4 : 0; }
  // Units of so many elements in a part.
  std::int64_t of_part(const BiasAddProblem& p, std::int64_t vector) const {
    const ChannelPlanes planes(p);
    return divide_up(planes.inner == 1 ? planes.planes : planes.positions() / vector, parts);
  }
  // README.md, "Bound".
  std::int64_t chain(const BiasAddProblem& p) const {
    const ChannelPlanes planes(p);
    const std::int64_t in_group =
        planes.inner == 1 ? divide_up(of_part(p, 1), group / lanes) : divide_up(of_part(p, 1), 4 * group) + 1;
    constexpr std::int64_t of_tree = 9;
    return in_group + of_tree + parts;
  }
};

class Plan final : public BiasAddPlanBody {
 public:
  Plan(const BiasAddProblem& problem, devices::Device& device, const Cut& cut) : BiasAddPlanBody(problem), cut_(cut) {
    constexpr std::int64_t most_narrow = std::int64_t{1} << 30;
    const std::string type = fmt::format("TYPE_{}", name(problem.type));
    const std::vector<devices::Definition> definitions = {
        {"TYPE", type},
        {"OUTPUT", type},
        {"index_t", elements_of(problem) < most_narrow ? "int" : "long"},
        {"GROUP", std::to_string(group)},
        {"LANES", std::to_string(cut.lanes)},
        {"RELU", problem.relu ? "1" : "0"}};
    program_ = device.build(
        std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) + std::string(bias_add_kernel),
        definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const BiasAddRun& run, const Operand& workspace) const override {
    problem().backward ? append_sums(sequence, run, workspace) : append_addition(sequence, run);
  }

 private:
  void append_addition(devices::Sequence& sequence, const BiasAddRun& run) const {
    const BiasAddProblem& p = problem();
    const ChannelPlanes planes(p);
    const std::int64_t size = size_of(p.type), elements = elements_of(p), of_group = 4 * quads * group;
    launch_groups(divide_up(elements, of_group), [&](std::int64_t first, std::int64_t groups) {
      const std::array<devices::KernelArgument, 10> arguments = {run.x.buffer.impl().get(),
                                                                 run.x.offset_bytes / size,
                                                                 run.b.buffer.impl().get(),
                                                                 run.b.offset_bytes / size,
                                                                 run.y.buffer.impl().get(),
                                                                 run.y.offset_bytes / size,
                                                                 elements,
                                                                 first * of_group,
                                                                 planes.inner,
                                                                 p.c};
      sequence.launch(program_, "add_bias", {{groups * group}, {group}}, arguments);
    });
  }

  void append_sums(devices::Sequence& sequence, const BiasAddRun& run, const Operand& given) const {
    const BiasAddProblem& p = problem();
    const ChannelPlanes planes(p);
    const bool is_columns = planes.inner == 1;
    const std::int64_t size = size_of(p.type);
    const Operand& workspace = cut_.parts > 1 ? given : run.b;                          // else it is not used
    const Operand &output = p.relu ? run.output : run.y, &to = p.relu ? run.x : run.b;  // else they are not used
    const devices::Buffer *const dy = run.y.buffer.impl().get(), *const db = run.b.buffer.impl().get(),
                                 *const sums = workspace.buffer.impl().get(), *const y = output.buffer.impl().get(),
                                 *const dx = to.buffer.impl().get();
    const std::int64_t sums_offset = cut_.parts > 1 ? workspace.offset_bytes / 4 : 0,
                       dy_offset = run.y.offset_bytes / size, db_offset = run.b.offset_bytes / size,
                       y_offset = output.offset_bytes / size, dx_offset = to.offset_bytes / size;
    const auto is_aligned = [&](const Operand& array) {
      const auto begin = array.buffer.impl()->place().address + static_cast<std::uint64_t>(array.offset_bytes);
      return begin % static_cast<std::uint64_t>(4 * size) == 0;
    };
    const bool aligned = is_aligned(run.y) && (!p.relu || (is_aligned(run.output) && is_aligned(run.x)));
    const std::int64_t vector = aligned && (is_columns ? p.c : planes.inner) % 4 == 0 ? 4 : 1;
    const std::int64_t of_part = cut_.of_part(p, vector),
                       groups = cut_.parts * (is_columns ? divide_up(p.c, cut_.lanes * vector) : p.c);
    const auto parts = static_cast<std::int32_t>(cut_.parts), units = static_cast<std::int32_t>(vector);
    launch_groups(groups, [&](std::int64_t first, std::int64_t count) {
      const devices::Grid grid{{count * group}, {group}};
      if (is_columns)
        sequence.launch(
            program_, "sum_columns", grid,
            std::array<devices::KernelArgument, 16>{dy, dy_offset, y, y_offset, dx, dx_offset, sums, sums_offset, db,
                                                    db_offset, first, planes.planes, p.c, parts, of_part, units});
      else
        sequence.launch(program_, "sum_planes", grid,
                        std::array<devices::KernelArgument, 17>{dy, dy_offset, y, y_offset, dx, dx_offset, sums,
                                                                sums_offset, db, db_offset, first, planes.planes,
                                                                planes.inner / vector, p.c, parts, of_part, units});
    });
    if (cut_.parts > 1)
      sequence.launch(program_, "sum_parts", {{round_up(p.c, group)}, {group}},
                      std::array<devices::KernelArgument, 6>{sums, sums_offset, db, db_offset, p.c, parts});
  }

  Cut cut_;
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public BiasAddSolver {
 public:
  std::string_view id() const override { return "bias_add/direct/gpu.1"; }
  Answer offer(const BiasAddProblem& problem, const DevicePointer& device,
               const SolverOptions& request) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    const Cut cut(problem, *device, request.max_workspace_bytes);
    if (std::string reason = long_chain_refusal(cut.chain(problem)); problem.backward && !reason.empty()) return reason;
    return Offer{
        .cost = {(problem.backward && cut.parts > 1 ? 2 : 1) * launch_cost(*device) +
                 byte_cost(*device) * least_bytes(problem)},
        .bound = bias_add_bound(problem, cut.chain(problem)),
        .workspace_bytes = problem.backward ? cut.workspace_bytes(problem) : 0,
        .plan = [=] { return std::make_shared<Plan>(problem, *device, cut); },
    };
  }
};

}  // namespace

const BiasAddSolver& bias_add_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
