// Batch normalisation on OpenCL and CUDA devices.
#include <algorithm>
#include <array>
#include <bit>

#include "core/checked.h"
#include "embedded/norm_backward.kernel.h"
#include "embedded/norm_forward.kernel.h"
#include "embedded/norm_tiles.kernel.h"
#include "operations/batch_norm/batch_norm.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

using Pass = BatchNormProblem::Pass;

constexpr std::int64_t group = 128;

// How groups share the work: `parts` of each channel's units for moments and sums, and `pieces` for what is made of
// these.
struct Cut {
  std::int64_t lanes = 1;  // of rows of channels
  std::int64_t tile = 0;   // units of a channel that a group has on their way at once
  std::int64_t parts = 1, pieces = 1;

  Cut(const BatchNormProblem& p, const devices::Device& device, std::int64_t workspace_limit) {
    // Rows are read by 128 bytes of f32. More parts would take longer to join than to make.
    constexpr std::int64_t most_lanes = 8, groups_of_unit = 16, most_parts = 128;
    if (has_rows(p))
      lanes =
          std::min(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(divide_up(p.c, 4)))), most_lanes);
    tile = group / lanes * units_of_item(p);
    const std::int64_t tiles = divide_up(units(p, best_unit(p)), tile);
    const std::int64_t wanted = divide_up(groups_of_unit * std::max(device.info().compute_units, 1), groups(p));
    pieces = std::min(tiles, wanted), parts = std::min(pieces, most_parts);
    if (workspace_limit >= 0 && workspace_bytes(p) > workspace_limit) parts = 1;
  }

  static bool has_rows(const BatchNormProblem& p) { return NormPlanes(p).inner == 1; }
  static std::int64_t units_of_item(const BatchNormProblem& p) { return p.pass == Pass::backward ? 4 : 8; }
  // Elements of a unit of runs, where arrays begin at multiples of four.
  static std::int64_t best_unit(const BatchNormProblem& p) { return NormPlanes(p).inner % 4 == 0 ? 4 : 1; }
  // Of a channel.
  static std::int64_t units(const BatchNormProblem& p, std::int64_t of_unit) {
    return has_rows(p) ? NormPlanes(p).planes : NormPlanes(p).positions() / of_unit;
  }
  // That have all channels.
  std::int64_t groups(const BatchNormProblem& p) const { return has_rows(p) ? divide_up(p.c, 4 * lanes) : p.c; }
  std::int64_t workspace_bytes(const BatchNormProblem& p) const {
    return p.pass == Pass::inference ? 0 : parts * p.c * 8;
  }
  std::int64_t of_part(std::int64_t all_units) const { return round_up(divide_up(all_units, parts), group / lanes); }
  std::int64_t of_piece(std::int64_t all_units) const { return round_up(divide_up(all_units, pieces), tile); }

  // README.md, "Bound".
  std::int64_t roundings(const BatchNormProblem& p) const {
    constexpr std::int64_t of_tree = 7, of_joining = 5;
    const std::int64_t tiles = divide_up(of_part(units(p, 1)), tile), parts_of_item = divide_up(parts, group / lanes),
                       in_tile = units_of_item(p) + 2;
    if (p.pass == Pass::backward) return 2 + tiles * units_of_item(p) + 2 + of_tree + parts_of_item + of_tree;
    return 1 + in_tile + 1 + of_joining * (tiles + of_tree + parts_of_item + of_tree);
  }
};

// Of a launch, one after the other.
struct Arguments {
  std::array<devices::KernelArgument, 40> values;
  std::size_t count = 0;

  void add(const devices::KernelArgument& value) { values[count++] = value; }
  void add(const NormArray& array, std::int64_t element_bytes) {
    add(array.buffer.impl().get());
    add(array.offset_bytes / element_bytes);
  }
  std::span<const devices::KernelArgument> all() const { return std::span(values).first(count); }
};

class Plan final : public BatchNormPlanBody {
 public:
  Plan(const BatchNormProblem& problem, devices::Device& device, const Cut& cut)
      : BatchNormPlanBody(problem), cut_(cut), size_(size_of(problem.type)) {
    constexpr std::int64_t most_narrow = std::int64_t{1} << 30;
    const std::string type = fmt::format("TYPE_{}", name(problem.type));
    const std::vector<devices::Definition> definitions = {
        {"TYPE", type},
        {"OUTPUT", type},
        {"OF_ROWS", Cut::has_rows(problem) ? "1" : "0"},
        {"RELU", problem.relu ? "1" : "0"},
        {"INFERENCE", problem.pass == Pass::inference ? "1" : "0"},
        {"index_t", elements_of(problem) < most_narrow ? "int" : "long"},
        {"GROUP", std::to_string(group)},
        {"LANES", std::to_string(cut.lanes)},
        {"UNITS", std::to_string(Cut::units_of_item(problem))}};
    const bool backward = problem.pass == Pass::backward;
    program_ = device.build(std::string(kernels::exact_root()) + std::string(kernels::exact_division()) +
                                std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) +
                                std::string(norm_tiles_kernel) +
                                std::string(backward ? norm_backward_kernel : norm_forward_kernel),
                            definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const BatchNormArrays& run, std::span<const Scalar> scalars) const override {
    const Shape shape = shape_of(run);
    if (problem().pass == Pass::backward) {
      append_gradient_sums(sequence, run, shape);
      append_gradient(sequence, run, shape);
    } else {
      if (problem().pass == Pass::forward) append_moments(sequence, run, shape);
      append_normalisation(sequence, run, shape, scalars);
    }
  }

 private:
  // How a run's arrays are read: where all of them begin at multiples of four elements, by four.
  struct Shape {
    std::int64_t of_unit = 1, units = 0, of_part = 0, parts = 0;
    bool is_aligned = false;
  };
  Shape shape_of(const BatchNormArrays& run) const {
    const BatchNormProblem& p = problem();
    const auto begins_at_four = [&](const NormArray& array) {
      if (!array.buffer) return true;
      const auto begin = array.buffer.impl()->place().address + static_cast<std::uint64_t>(array.offset_bytes);
      return begin % static_cast<std::uint64_t>(4 * size_) == 0;
    };
    const std::int64_t side_by_side = Cut::has_rows(p) ? p.c : NormPlanes(p).inner;
    Shape shape;
    shape.is_aligned =
        side_by_side % 4 == 0 && begins_at_four(run.x) && begins_at_four(run.result) && begins_at_four(run.dy);
    shape.of_unit = Cut::has_rows(p) || shape.is_aligned ? 4 : 1;
    shape.units = Cut::units(p, shape.of_unit);
    shape.of_part = cut_.of_part(shape.units);
    shape.parts = divide_up(shape.units, shape.of_part);
    return shape;
  }

  void add_shape(Arguments& arguments, const Shape& shape, std::int64_t first) const {
    const NormPlanes planes(problem());
    arguments.add(first);
    arguments.add(shape.units);
    arguments.add(Cut::has_rows(problem()) ? std::int64_t{1} : planes.inner / shape.of_unit);
    arguments.add(problem().c);
    arguments.add(static_cast<std::int32_t>(shape.of_unit));
    arguments.add(static_cast<std::int32_t>(shape.is_aligned));
  }
  void add_numbers(Arguments& arguments, std::initializer_list<NormArray> arrays) const {
    for (const NormArray& array : arrays) arguments.add(array, 4);
  }

  // Groups for so many cuts of all channels.
  template <typename Add>
  void launch(devices::Sequence& sequence, const char* kernel, std::int64_t cuts, const Add& add) const {
    launch_groups(cuts * cut_.groups(problem()), [&](std::int64_t first, std::int64_t groups) {
      Arguments arguments;
      add(arguments, first);
      sequence.launch(program_, kernel, {{groups * group}, {group}}, arguments.all());
    });
  }

  void append_moments(devices::Sequence& sequence, const BatchNormArrays& run, const Shape& shape) const {
    launch(sequence, "moments", shape.parts, [&](Arguments& arguments, std::int64_t first) {
      arguments.add(run.x, size_);
      arguments.add(run.workspace, 4);
      add_shape(arguments, shape, first);
      arguments.add(static_cast<std::int32_t>(shape.parts));
      arguments.add(shape.of_part);
    });
  }

  void append_normalisation(devices::Sequence& sequence, const BatchNormArrays& run, const Shape& shape,
                            std::span<const Scalar> scalars) const {
    const std::int64_t of_piece = cut_.of_piece(shape.units);
    launch(sequence, "normalise", divide_up(shape.units, of_piece), [&](Arguments& arguments, std::int64_t first) {
      arguments.add(run.x, size_);
      arguments.add(run.result, size_);
      add_numbers(arguments, {run.gamma, run.beta, run.running_mean, run.running_var});
      add_shape(arguments, shape, first);
      arguments.add(of_piece);
      arguments.add(scalars[0]);
      if (problem().pass == Pass::inference) return;
      add_numbers(arguments, {run.workspace, run.mean, run.invstd});
      arguments.add(static_cast<std::int32_t>(shape.parts));
      arguments.add(shape.of_part);
      arguments.add(scalars[1]);
      arguments.add(Scalar::complement(scalars[1]));
    });
  }

  void append_gradient_sums(devices::Sequence& sequence, const BatchNormArrays& run, const Shape& shape) const {
    launch(sequence, "gradient_sums", shape.parts, [&](Arguments& arguments, std::int64_t first) {
      arguments.add(run.x, size_);
      arguments.add(run.dy, size_);
      add_numbers(arguments, {run.gamma, run.beta, run.mean, run.invstd, run.workspace});
      add_shape(arguments, shape, first);
      arguments.add(static_cast<std::int32_t>(shape.parts));
      arguments.add(shape.of_part);
    });
  }

  void append_gradient(devices::Sequence& sequence, const BatchNormArrays& run, const Shape& shape) const {
    const std::int64_t of_piece = cut_.of_piece(shape.units);
    launch(sequence, "differentiate", divide_up(shape.units, of_piece), [&](Arguments& arguments, std::int64_t first) {
      arguments.add(run.x, size_);
      arguments.add(run.dy, size_);
      arguments.add(run.result, size_);
      add_numbers(arguments, {run.gamma, run.beta, run.mean, run.invstd, run.dgamma, run.dbeta, run.workspace});
      add_shape(arguments, shape, first);
      arguments.add(static_cast<std::int32_t>(shape.parts));
      arguments.add(of_piece);
      arguments.add(static_cast<float>(1 / static_cast<double>(NormPlanes(problem()).positions())));
    });
  }

  Cut cut_;
  std::int64_t size_;
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public BatchNormSolver {
 public:
  std::string_view id() const override { return "batch_norm/direct/gpu.1"; }
  Answer offer(const BatchNormProblem& problem, const DevicePointer& device,
               const SolverOptions& request) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    const Cut cut(problem, *device, request.max_workspace_bytes);
    const std::int64_t roundings = cut.roundings(problem);
    constexpr std::int64_t most_roundings = std::int64_t{1} << 20;
    if (problem.pass != Pass::inference && roundings > most_roundings)
      return fmt::format("sums are rounded {} times: {} are the most, and a workspace cuts them", roundings,
                         most_roundings);
    return Offer{
        .cost = {(problem.pass == Pass::inference ? 1 : 2) * launch_cost(*device) +
                 byte_cost(*device) * moved_bytes(problem)},
        .bound = batch_norm_bound(problem, roundings),
        .workspace_bytes = cut.workspace_bytes(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, cut); },
    };
  }
};

}  // namespace

const BatchNormSolver& batch_norm_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
