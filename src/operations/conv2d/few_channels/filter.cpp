// Convolution backward of the filter of groups of few channels, or of few filters, on the matrix units of compute
// capability 9.0: the other operand from global memory through registers. fp32 by parts of fp16.
#include <algorithm>
#include <optional>

#include "embedded/few_channels_filter.kernel.h"
#include "embedded/few_channels_sums.kernel.h"
#include "embedded/few_channels_units.kernel.h"
#include "operations/conv2d/few_channels/filter_geometry.h"
#include "operations/conv2d/few_channels/filter_plan.h"
#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations {
namespace few_channels {
namespace {

namespace split = split_gemm;

// Rows by columns that a warpgroup sums up, one group of which has a compute unit.
struct FilterTile {
  FilterForm form = {};
  FilterTask task = {};
  double cycles = 0;  // of a compute unit, for all
};

std::span<const Tunable> filter_tunables() {
  static const std::vector<Tunable> all = {{"columns", {8, 16, 24, 32, 40, 48, 56, 64}},
                                           {"held", {1, 2, 3, 4}},
                                           {"stages", {2, 1}},
                                           {"workers", {4, 3, 2}},
                                           {"rows_of_x", {0, 1}}};
  return all;
}
Tuning filter_tuning_of(const FilterTile& tile) {
  return {{"columns", tile.form.columns},
          {"held", tile.form.held},
          {"stages", tile.form.stages},
          {"workers", tile.form.workers},
          {"rows_of_x", tile.form.rows_of_x}};
}

// Rows are x's channels then, which meet filters' taps at every pixel.
bool has_few_filters(const Conv2dShape& g) {
  return g.k_group <= most_few && g.stride_h * g.stride_w == 1;
}

// In local memory and in registers.
bool fits(const FilterTile& tile, const devices::Device& device) {
  const std::int64_t workers = tile.form.workers;
  if (tile.form.set_columns() > (workers == 4 ? 32 : workers == 3 ? 80 : 192)) return false;
  constexpr std::int64_t rest = 1024 + 4352;  // what the device keeps of each group's, and what the text declares
  return tile.form.local_bytes() <= device.facts().most_local_memory_bytes - rest;
}

std::int64_t sums_of(const FilterTile& tile) {
  return filter_sums_of(tile.task, filter_rows, tile.form.set_columns());
}
split::Workspace workspace_for(const FilterTile& tile, DataType type) {
  return filter_workspace_of(type, sums_of(tile));
}

// Cycles of a compute unit of 9.0. README.md, "Cost", has what they stand for.
double cycles_of(const FilterTile& tile, const split::Numbers& numbers, const devices::Device& device) {
  const FilterForm& form = tile.form;
  const std::int64_t units = std::int64_t{tile.task.sets} * tile.task.parts,
                     compute_units = device.info().compute_units,
                     rounds = divide_up(units, form.workers * compute_units),
                     busy = std::min(form.workers, divide_up(units, compute_units)),
                     loads = divide_up(form.set_columns(), form.workers > 2           ? 16
                                                           : form.set_columns() > 128 ? 32
                                                                                      : 48);
  const double multiplied = static_cast<double>(numbers.products * 4 * form.held) *
                            std::max(static_cast<double>(form.columns) / 2, 32.0),
               rows = static_cast<double>(divide_up(std::min<std::int64_t>(tile.task.rows, filter_rows), 16)) / 4,
               instructions = 170 + 360 * rows + 24 * static_cast<double>(form.set_columns()),
               alone =
                   (form.stages > 1 ? 500 : 1100) + 2 * instructions + 400 * static_cast<double>(loads) + multiplied,
               of_sets = tile.task.sets_n > 1 ? 1.6 : 1.0,
               of_step = of_sets * std::max(static_cast<double>(busy) * (multiplied + instructions), alone),
               steps = static_cast<double>(divide_up(tile.task.steps, tile.task.parts)),
               bytes = 8 * static_cast<double>(sums_of(tile));
  return static_cast<double>(rounds) * (steps * of_step + 2000) + split::cycles_of_bytes(bytes, device);
}

// The tile of the fewest cycles whose parts fit the request's workspace, of exactly the tuning where there is one.
std::optional<FilterTile> best_filter_tile(const Conv2dProblem& problem, const devices::Device& device,
                                           const SolverOptions& request) {
  const Conv2dShape g(problem);
  std::optional<FilterTile> best;
  const Tuning wanted = Tuning::parse(request.tuning);
  const split::Numbers numbers = split::numbers_of(problem.type);
  for_each_tuning(filter_tunables(), [&](const Tuning& each) {
    if (!wanted.is_empty() && !(each == wanted)) return;
    const bool rows_of_x = each.at("rows_of_x") != 0;
    if (rows_of_x ? !has_few_filters(g) : g.c_group > most_few) return;
    FilterTile tile{.form = filter_form_of(g, rows_of_x, each.at("columns"), each.at("held"), each.at("stages"),
                                           each.at("workers"))};
    const std::int64_t all = tile.form.all_columns(), idle = tile.form.set_columns() - all;
    if (all > most_columns || !fits(tile, device) || (idle >= tile.form.columns && tile.form.held > 1)) return;
    if (wanted.is_empty() && idle >= 8 && tile.form.held == 1) return;
    std::int64_t parts = tile.form.workers * device.info().compute_units;
    tile.task = filter_task_of(g, tile.form, parts);
    parts = parts / tile.task.sets;
    do tile.task = filter_task_of(g, tile.form, parts), parts /= 2;
    while (parts > 0 && request.max_workspace_bytes >= 0 &&
           workspace_for(tile, problem.type).bytes() > request.max_workspace_bytes);
    tile.cycles = cycles_of(tile, numbers, device);
    if (!best || tile.cycles < best->cycles) best = tile;
  });
  return best;
}

std::string filter_refusal_of(const Conv2dProblem& problem) {
  if (std::string reason = filter_task_refusal_of(problem); !reason.empty()) return reason;
  const Conv2dShape g(problem);
  if (g.c_group > most_few && !has_few_filters(g))
    return fmt::format(
        "groups have {} channels and {} filters, and it is for {} of either; of filters without a stride", g.c_group,
        g.k_group, most_few);
  if ((has_few_filters(g) ? std::min(g.c_group, g.k_group) : g.c_group) * g.r * g.s > most_columns)
    return fmt::format("has more than {} columns: channels or filters, whichever are few, at taps", most_columns);
  return {};
}

FilterLaunch launch_of(const Conv2dProblem& problem, const devices::Device& device, const FilterTile& tile) {
  const FilterForm& form = tile.form;
  FilterLaunch launch{.kernel = "few_channels_filter",
                      .task = tile.task,
                      .tile = {.columns = 32, .stages = form.stages},
                      .text = std::string(few_channels_units_kernel) + std::string(few_channels_sums_kernel) +
                              std::string(few_channels_filter_kernel),
                      .rows = filter_rows,
                      .columns = form.set_columns(),
                      .items = 128 * form.workers,
                      .local_bytes = form.local_bytes()};
  launch.groups = std::min<std::int64_t>(divide_up(std::int64_t{tile.task.sets} * tile.task.parts, form.workers),
                                         device.info().compute_units);
  launch.constants = filter_constants_of(problem, form.rows_of_x, problem.layout == Layout::nhwc);
  const auto add = [&](const char* symbol, std::int64_t value) {
    launch.constants.push_back({symbol, std::to_string(value)});
  };
  add("COLUMNS", form.columns), add("HELD", form.held), add("SIXTEENS", 4);
  add("WORKERS", form.workers), add("WORKER_BYTES", form.worker_bytes());
  return launch;
}

Answer filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  const std::optional<FilterTile> tile = best_filter_tile(problem, *device, request);
  if (!tile && !request.tuning.empty())
    return fmt::format("tuning {}: sums, patches and rows do not go together so", request.tuning);
  if (!tile) return "has no room for sums of its columns";
  const FilterTask& task = tile->task;
  if (std::int64_t{task.sets} * std::max<std::int64_t>(task.parts, 2 * tile->form.set_columns()) > most_groups)
    return fmt::format("has {} sets of sums, and a launch counts {} groups", task.sets, most_groups);
  const Conv2dElements all = elements_of(problem);
  const split::Sampling sampling = filter_sampling_of(problem);
  const double size = 4, of_x = size * static_cast<double>(all.x), of_y = size * static_cast<double>(all.y),
               looked_at = of_x / static_cast<double>(sampling.a) + of_y / static_cast<double>(sampling.b),
               launches = sampling.bits() != 0 ? 4 : 3;
  // Rows are read for each set of columns, and patches for each set of rows; again from the second cache.
  const double of_rows = tile->form.rows_of_x ? of_x : of_y, of_patches = of_x + of_y - of_rows,
               bytes = of_rows * (1 + task.sets_n) / 2 + of_patches * (1 + task.sets_m) / 2;
  const double pixels = longest_sum(problem), steps = static_cast<double>(divide_up(task.steps, task.parts));
  return Offer{
      .cost = {split::cost_of_cycles(launches * split::launch_cycles + split::others_wait +
                                         split::cycles_of_bytes(looked_at, *device) +
                                         std::max(tile->cycles, split::cycles_of_bytes(bytes, *device)),
                                     *device)},
      .bound = split::bound_of(split::numbers_of(problem.type), std::max(steps, pixels / (64 * 256) + 1),
                               static_cast<double>(divide_up(task.parts, adding_slices) + adding_slices), pixels,
                               split::cutting_of(*device)),
      .workspace_bytes = workspace_for(*tile, problem.type).bytes(),
      .uses_only_fma = false,
      .tuning = filter_tuning_of(*tile),
      .plan = [=,
               tile =
                   *tile] { return std::make_shared<FilterPlan>(problem, *device, launch_of(problem, *device, tile)); },
  };
}

class FewChannelsFilterGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/few_channels/gpu-filter.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, 512); !reason.empty()) return reason;
    if (std::string reason = split::tensor_refusal(*device); !reason.empty()) return reason;
    if (std::string reason = filter_refusal_of(problem); !reason.empty()) return reason;
    return filter_offer(problem, device, request);
  }
  std::span<const Tunable> tunables() const override { return filter_tunables(); }
};

}  // namespace
}  // namespace few_channels

const Conv2dSolver& conv2d_few_channels_filter_gpu() {
  static const few_channels::FewChannelsFilterGpu solver;
  return solver;
}

}  // namespace omniconv::operations
