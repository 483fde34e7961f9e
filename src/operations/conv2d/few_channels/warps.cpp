// Convolution backward of the filter of groups of few channels and few filters, of many taps, by warps' instructions on
// the matrix units of compute capability 9.0: x lies once in local memory, whatever the taps. fp32 by parts of fp16.
#include <algorithm>
#include <cmath>
#include <optional>

#include "embedded/few_channels_sums.kernel.h"
#include "embedded/few_channels_warps.kernel.h"
#include "operations/conv2d/few_channels/filter_plan.h"
#include "operations/conv2d/few_channels/warps_geometry.h"
#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations {
namespace few_channels {
namespace {

namespace split = split_gemm;

struct WarpsTile {
  WarpsForm form = {};
  FilterTask task = {};
  double cycles = 0;  // of a compute unit, for all
};

std::span<const Tunable> warps_tunables() {
  static const std::vector<Tunable> all = {{"rows", {16, 32}},
                                           {"blocks", {1, 2, 4, 6, 8, 12, 16}},
                                           {"warps", {4, 6, 8, 12, 16}},
                                           {"resident", {1, 2}},
                                           {"width", {16, 32, 48, 64, 96, 112, 128}},
                                           {"height", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16}},
                                           {"sixteens", {1, 2, 4}}};
  return all;
}
Tuning warps_tuning_of(const WarpsForm& form) {
  return {{"rows", form.rows},   {"blocks", form.blocks}, {"warps", form.warps},      {"resident", form.resident},
          {"width", form.width}, {"height", form.height}, {"sixteens", form.sixteens}};
}

// A work item's: sums, rows and pixels of a step, products on their way, the rest. With this the compiler puts none
// into memory: blocks that share pixels need copies of them.
bool has_registers(const WarpsForm& form, std::int64_t planes) {
  const std::int64_t matrices = form.rows / 16, chain = form.chain(),
                     all = 5 * matrices * form.blocks + 4 * planes * matrices * form.sixteens +
                           planes * (2 * form.sixteens + chain - 1) + 4 * matrices * chain + form.blocks / chain +
                           (chain > 1 ? 48 : 34),
                     together = form.warps * form.resident;
  return together >= 8 && together <= 16 && all <= std::min<std::int64_t>(65536 / (32 * together) / 8 * 8, 240);
}
bool has_room(const WarpsForm& form, const devices::Device& device) {
  const std::int64_t rest = 1024 + 256 * form.warps;  // what the device keeps of each group's, and the text declares
  return form.local_bytes() <= device.facts().most_local_memory_bytes / form.resident - rest;
}

split::Workspace workspace_for(const WarpsTile& tile, DataType type) {
  return filter_workspace_of(type, filter_sums_of(tile.task, tile.form.rows, tile.form.set_columns()));
}

// Cycles of a compute unit of 9.0. README.md, "Few filters and many taps", has what they stand for.
double cycles_of(const WarpsTile& tile, const Conv2dShape& g, const split::Numbers& numbers,
                 const devices::Device& device) {
  const WarpsForm& form = tile.form;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const WarpsSets sets(tile.task, form.warps);
  const std::int64_t matrices = form.rows / 16, chain = form.chain(), chains = form.blocks / chain,
                     runs = 2 * form.sixteens + chain - 1,
                     works = g.groups * sets.groups * (tile.task.parts / sets.shares),
                     units = device.info().compute_units, rounds = divide_up(works, units * form.resident),
                     together = std::min(form.resident, divide_up(works, units));
  // Other kernels of this folder take so many times their predictions.
  constexpr double slowness = 1.2;
  // Of a warp's step.
  const double products = real(numbers.products * form.sixteens * matrices * form.blocks),
               copies = real(form.parts * chains * runs),
               read = real(form.parts * 4 * matrices * form.sixteens) + copies * (form.taps_w % 8 == 0 ? 1.0 : 1.3),
               issued = products + real(form.parts * matrices * form.sixteens) + copies * (chain > 1 ? 2.2 : 1.0) +
                        real(4 * matrices * form.blocks) + 20,
               units_busy = 1.61 * products, most = std::max({units_busy, read, issued / 4}),
               of_step = most + 0.3 * (units_busy + read + issued / 4 - most),
               alone = 33 * products / real(2 * chain * matrices);
  // Of a tile, as its warps share the steps that are there.
  const double steps = real(g.p * divide_up(g.q, 16 * form.sixteens)) /
                       real(divide_up(g.p, form.height) * divide_up(g.q, form.width)),
               of_warp = std::max(steps / real(sets.shares), 1.0),
               busy = real(sets.sets) * real(sets.shares) / real(sets.groups),
               multiplied = std::max(of_warp * alone, of_warp * busy * of_step);
  const Conv2dElements elements{g.n * g.c * g.h * g.w, 0, g.n * g.k * g.p * g.q};
  const double x_items = real(form.channels * form.patch_rows() * form.phases() * form.quads()) / 32,
               y_items = real(form.height * form.span * 4 * form.width) / 32,
               filling = x_items * (55.0 / 4 + 5 * (form.phases() > 1 ? 6 : 4)) + y_items * (45.0 / 4 + 4 * 3 + 4),
               latency = elements.x + elements.y < (std::int64_t{10} << 20) ? 700 : 1200,
               waits =
                   latency * (std::ceil(x_items / real(2 * form.warps)) + std::ceil(y_items / real(2 * form.warps))) +
                   500,
               of_tile = std::max(multiplied + std::max(filling, waits),
                                  real(together) * (of_warp * busy * of_step + 0.7 * filling));
  const double tiles = real(divide_up(tile.task.steps * sets.shares, tile.task.parts)),
               bytes = 8 * real(filter_sums_of(tile.task, std::min(form.rows, g.k_group), form.set_columns()));
  return slowness * real(rounds) * (tiles * of_tile + 2500) + split::cycles_of_bytes(bytes, device);
}

// Of a form, in as many parts as groups share the device and the request's workspace holds; nothing, where it has no
// room.
std::optional<WarpsTile> tile_of(const Conv2dProblem& problem, const Conv2dShape& g, const WarpsForm& form,
                                 const devices::Device& device, const SolverOptions& request) {
  const split::Numbers numbers = split::numbers_of(problem.type);
  if (form.width % (16 * form.sixteens) != 0 || !has_registers(form, numbers.planes()) || !has_room(form, device))
    return {};
  WarpsTile tile{.form = form};
  std::int64_t groups = form.resident * device.info().compute_units;
  do tile.task = warps_task_of(g, form, groups), groups /= 2;
  while (groups > 0 && request.max_workspace_bytes >= 0 &&
         workspace_for(tile, problem.type).bytes() > request.max_workspace_bytes);
  tile.cycles = cycles_of(tile, g, numbers, device);
  return tile;
}

// The tile of the fewest cycles, of exactly the tuning where there is one.
std::optional<WarpsTile> best_warps_tile(const Conv2dProblem& problem, const devices::Device& device,
                                         const SolverOptions& request) {
  const Conv2dShape g(problem);
  const Tuning wanted = Tuning::parse(request.tuning);
  const auto form_of = [&](std::int64_t rows, std::int64_t blocks, std::int64_t warps, std::int64_t resident,
                           std::int64_t width, std::int64_t height, std::int64_t sixteens) {
    return warps_form_of(g, rows, blocks, warps, resident, width, height, sixteens,
                         split::numbers_of(problem.type).planes());
  };
  if (!wanted.is_empty())
    return tile_of(problem, g,
                   form_of(wanted.at("rows"), wanted.at("blocks"), wanted.at("warps"), wanted.at("resident"),
                           wanted.at("width"), wanted.at("height"), wanted.at("sixteens")),
                   device, request);
  const std::int64_t planes = split::numbers_of(problem.type).planes();
  const std::span<const Tunable> all = warps_tunables();
  std::optional<WarpsTile> best;
  for (const std::int64_t rows : all[0].values)
    for (const std::int64_t blocks : all[1].values)
      for (const std::int64_t warps : all[2].values)
        for (const std::int64_t resident : all[3].values)
          for (const std::int64_t sixteens : all[6].values) {
            if ((rows > 16 && g.k_group <= 16) || 8 * blocks > round_up(g.c_group * g.r * g.s, 16)) continue;
            if (!has_registers(form_of(rows, blocks, warps, resident, 64, 1, sixteens), planes)) continue;
            for (const std::int64_t width : all[4].values)
              for (const std::int64_t height : all[5].values) {
                if (width >= g.q + 64 || (height > 1 && height >= 2 * g.p)) continue;
                const std::optional<WarpsTile> tile = tile_of(
                    problem, g, form_of(rows, blocks, warps, resident, width, height, sixteens), device, request);
                if (tile && (!best || tile->cycles < best->cycles)) best = tile;
              }
          }
  return best;
}

FilterLaunch launch_of(const Conv2dProblem& problem, const devices::Device& device, const WarpsTile& tile) {
  const WarpsForm& form = tile.form;
  const WarpsSets sets(tile.task, form.warps);
  FilterLaunch launch{.kernel = "few_channels_warps",
                      .task = tile.task,
                      .tile = {.columns = 32, .resident = form.resident, .stages = 1},
                      .text = std::string(kernels::warp_units()) + std::string(few_channels_sums_kernel) +
                              std::string(few_channels_warps_kernel),
                      .rows = form.rows,
                      .columns = form.set_columns(),
                      .items = 32 * form.warps,
                      .local_bytes = form.local_bytes()};
  launch.groups = std::min(tile.task.groups * sets.groups * (tile.task.parts / sets.shares),
                           form.resident * device.info().compute_units);
  launch.constants = filter_constants_of(problem, false, false);
  const auto add = [&](const char* symbol, std::int64_t value) {
    launch.constants.push_back({symbol, std::to_string(value)});
  };
  add("MATRIX_UNITS", 1), add("WARPS", form.warps), add("BLOCKS", form.blocks), add("CHAIN", form.chain());
  add("SIXTEENS", form.sixteens), add("WIDTH", form.width), add("HEIGHT", form.height), add("SPAN", form.span);
  add("PHASES", form.phases()), add("COPIES", form.copies()), add("QUADS", form.quads());
  add("PATCH_ROWS", form.patch_rows()), add("PLANE_BYTES", form.plane_bytes());
  return launch;
}

Answer warps_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  const std::optional<WarpsTile> tile = best_warps_tile(problem, *device, request);
  if (!tile && !request.tuning.empty())
    return fmt::format("tuning {}: sums, tiles and warps do not go together so", request.tuning);
  if (!tile) return "has no room for a tile of pixels and what its taps meet";
  const FilterTask& task = tile->task;
  const WarpsForm& form = tile->form;
  if (task.sets * form.rows * form.set_columns() / 32 > most_groups ||
      task.sets * std::int64_t{task.parts} > most_groups)
    return fmt::format("has {} sets of sums, and a launch counts {} groups", task.sets, most_groups);
  const Conv2dElements all = elements_of(problem);
  const split::Sampling sampling = filter_sampling_of(problem);
  const WarpsSets sets(task, form.warps);
  const double of_x = 4 * static_cast<double>(all.x), of_y = 4 * static_cast<double>(all.y),
               looked_at = of_x / static_cast<double>(sampling.a) + of_y / static_cast<double>(sampling.b),
               launches = sampling.bits() != 0 ? 4 : 3;
  // Read again from the second cache for each group of sets.
  const double bytes = (of_x + of_y) * static_cast<double>(1 + sets.groups) / 2;
  const double pixels = longest_sum(problem),
               tiles = static_cast<double>(divide_up(task.steps * sets.shares, task.parts)),
               steps =
                   tiles * static_cast<double>(divide_up(form.height * form.width / (16 * form.sixteens), sets.shares));
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
      .tuning = warps_tuning_of(form),
      .plan = [=,
               tile =
                   *tile] { return std::make_shared<FilterPlan>(problem, *device, launch_of(problem, *device, tile)); },
  };
}

std::string warps_refusal_of(const Conv2dProblem& problem) {
  if (std::string reason = filter_task_refusal_of(problem); !reason.empty()) return reason;
  const Conv2dShape g(problem);
  if (g.c_group > most_few) return fmt::format("groups have {} channels, and it is for {}", g.c_group, most_few);
  if (g.c_group * g.r * g.s > most_columns)
    return fmt::format("has more than {} columns: channels at taps", most_columns);
  return {};
}

class FewChannelsWarpsGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/few_channels/gpu-filter-warps.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, 512); !reason.empty()) return reason;
    if (std::string reason = split::tensor_refusal(*device); !reason.empty()) return reason;
    if (std::string reason = warps_refusal_of(problem); !reason.empty()) return reason;
    return warps_offer(problem, device, request);
  }
  std::span<const Tunable> tunables() const override { return warps_tunables(); }
};

}  // namespace
}  // namespace few_channels

const Conv2dSolver& conv2d_few_channels_warps_gpu() {
  static const few_channels::FewChannelsWarpsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
