// Backward of the data, of groups of few channels, on the matrix units of compute capability 9.0: y goes through
// registers into the units, and dx gathers their sums from local memory. fp32 by parts of fp16.
#include "operations/conv2d/few_channels/data.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "embedded/few_channels_data.kernel.h"
#include "embedded/few_channels_units.kernel.h"
#include "operations/conv2d/few_channels/data_geometry.h"
#include "operations/conv2d/few_channels/geometry.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/split/products.h"

namespace omniconv::operations::few_channels {
namespace {

namespace split = split_gemm;

constexpr std::int64_t most_stride = 16;

// What groups of work items make, and how many of them share a compute unit.
struct DataTile {
  DataForm form = {};
  std::int64_t resident = 1, unit_rows = 1;
  double cycles = 0;  // of a compute unit, for all
};

// In local memory and in registers; and strips have cells.
bool fits(const DataTile& tile, const devices::Device& device) {
  constexpr std::int64_t rest = 1024 + 64;  // what the device keeps of each group's, and what the text declares
  const DataForm& form = tile.form;
  return tile.resident <= 2 && form.strip() > 0 && (form.blocks == 1 || form.slices() == 1) &&
         form.local_bytes() <= device.facts().most_local_memory_bytes / tile.resident - rest;
}

// Groups of a launch: a number of them for each group of channels.
std::int64_t groups_of(const DataTask& task, std::int64_t resident, std::int64_t units) {
  const std::int64_t of_group = std::clamp<std::int64_t>(units * resident / task.groups, 1, task.units);
  return of_group * task.groups;
}

// Steps of a unit, and how often it makes a slice.
struct Steps {
  double steps = 0, slices = 0;
};
Steps steps_of(const DataForm& form, std::int64_t unit_rows) {
  Steps all{.steps = static_cast<double>(divide_up(unit_rows + form.reach_h(), form.height()))};
  for (std::int64_t slice = 0; slice < form.slices(); ++slice) {
    const std::int64_t first = slice * form.rows * form.dilation_h / form.stride_h,
                       last = (std::min((slice + 1) * form.rows, form.taps_h) - 1) * form.dilation_h / form.stride_h,
                       ahead = std::max<std::int64_t>(form.reach_h() - last - form.height() + 1, 0);
    all.slices += static_cast<double>(divide_up(unit_rows + form.reach_h() - first, form.height()) -
                                      divide_up(ahead, form.height()));
  }
  return all;
}

// Cycles of a compute unit of 9.0. README.md, "Cost of the data", has what they stand for.
double unit_cycles(const DataForm& form, std::int64_t unit_rows, const split::Numbers& numbers) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const Steps all = steps_of(form, unit_rows);
  const double blocks = real(2 * form.blocks), sixteens = real(form.sixteens()), slices = real(form.slices()),
               chunks = real(form.all_chunks()) / slices, columns = real(form.taps_h * form.row_columns()) / slices,
               of_chunk = sixteens * real(numbers.products) * std::max(real(form.columns) / 2, 16.0),
               cells = (real(form.reach_h()) / slices + real(form.height())) * real(form.stride_h * form.cells()),
               of_cells = cells * real(form.channels * form.stride_w) / 12,
               of_slice =
                   blocks * (chunks * of_chunk + 5.5 * columns) + real(form.blocks) * chunks * 100 + of_cells + 350,
               of_step = blocks * sixteens * 40 + 300;
  return real(form.bodies()) * (all.slices * of_slice + all.steps * of_step);
}

// Units of the fewest cycles.
void choose_rows(DataTile& tile, const Conv2dShape& g, const split::Numbers& numbers, const devices::Device& device) {
  const DataTask whole = data_task_of(g, tile.form, 1);
  const std::int64_t rows = std::int64_t{whole.end_row} - whole.first_row, units = device.info().compute_units,
                     most = std::min(rows, 4 * units * tile.resident / (whole.strips * g.n * g.groups) + 2);
  const double of_filters = 3000 + static_cast<double>(tile.form.filter_bytes()) / 32 / 256 * 500;
  for (std::int64_t segments = 1; segments <= most; ++segments) {
    DataTile each = tile;
    each.unit_rows = divide_up(rows, segments);
    const DataTask task = data_task_of(g, each.form, each.unit_rows);
    const std::int64_t of_group = groups_of(task, tile.resident, units) / task.groups,
                       rounds = std::max(divide_up(std::int64_t{task.units} * task.groups, units),
                                         divide_up(task.units, of_group));
    const double together = std::min(tile.resident, rounds) == 1 ? 1 : 1.6;  // groups hide some of each other
    each.cycles = of_filters + static_cast<double>(rounds) / together * unit_cycles(each.form, each.unit_rows, numbers);
    if (segments == 1 || each.cycles < tile.cycles) tile = each;
  }
}

// The tile of the fewest cycles, of exactly the tuning where there is one.
std::optional<DataTile> best_tile(const Conv2dShape& g, const split::Numbers& numbers, const devices::Device& device,
                                  const SolverOptions& request, std::span<const Tunable> domain) {
  std::optional<DataTile> best;
  const Tuning wanted = Tuning::parse(request.tuning);
  for_each_tuning(domain, [&](const Tuning& each) {
    if (!wanted.is_empty() && !(each == wanted)) return;
    if (each.at("side") > 1 || each.at("workers") > 2 || (each.at("columns") & (each.at("columns") - 1)) != 0)
      return;  // forward alone
    const std::int64_t rows = each.at("held");
    if (rows > g.r && wanted.is_empty() && rows - g.r > 1) return;  // another holds all rows of the filter
    DataTile tile{.form = data_form_of(g, each.at("columns"), rows, each.at("blocks"), each.at("width")),
                  .resident = each.at("resident")};
    if (!fits(tile, device)) return;
    choose_rows(tile, g, numbers, device);
    // Of tiles that are as good the one of the longest rows, which memory likes.
    if (!best || std::pair(tile.cycles, -tile.form.width) < std::pair(best->cycles, -best->form.width)) best = tile;
  });
  return best;
}
Tuning tuning_of(const DataTile& tile, const SolverOptions& request, std::span<const Tunable> domain) {
  if (!request.tuning.empty()) return Tuning::parse(request.tuning);
  Tuning tuning;
  for (const Tunable& each : domain) {
    std::int64_t value = each.name == "columns"   ? tile.form.columns
                         : each.name == "held"    ? tile.form.rows
                         : each.name == "blocks"  ? tile.form.blocks
                         : each.name == "width"   ? tile.form.width
                         : each.name == "side"    ? 1
                         : each.name == "workers" ? 2
                                                  : tile.resident;
    // `rows` is no more than the filter has.
    while (std::find(each.values.begin(), each.values.end(), value) == each.values.end()) ++value;
    tuning.set(each.name, value);
  }
  return tuning;
}

std::string refusal_of(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (problem.type != DataType::f32 && problem.type != DataType::tf32)
    return fmt::format("is for f32 and tf32; infinite filters of {} would meet zeros where there is no y",
                       name(problem.type));
  if (g.c_group > most_channels)
    return fmt::format("groups have {} channels, and it gathers {} at most", g.c_group, most_channels);
  if (g.stride_w > most_stride)
    return fmt::format("strides of {} pass the {} that it gathers", g.stride_w, most_stride);
  constexpr std::int64_t most_extent = std::int64_t{1} << 24, most = std::int64_t{1} << 30;
  for (const std::int64_t extent : {g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, g.pad_top, g.pad_left, g.stride_h,
                                    g.dilation_h * g.r, g.dilation_w * g.s, g.p * g.stride_h, g.q * g.stride_w})
    if (extent >= most_extent) return fmt::format("an extent of {} passes the {} that it counts", extent, most_extent);
  if (g.h * g.w >= most / g.c || g.p * g.q >= most / g.k) return "has images of 2^30 numbers";
  if (g.n * (g.h + g.pad_top) >= most / (g.w + g.pad_left) || g.r * g.s >= 1 << 16)
    return "has 2^30 pixels, or 2^16 taps";
  return {};
}

class DataPlan final : public Conv2dPlanBody, split::ProductLaunches {
 public:
  DataPlan(const Conv2dProblem& problem, devices::Device& device, const DataTile& tile)
      : Conv2dPlanBody(problem),
        ProductLaunches(problem.type, problem.type, split::numbers_of(problem.type), device,
                        split::Tile{.columns = 32, .resident = tile.resident},
                        split::Workspace(0, 0, split::numbers_of(problem.type), 0)),
        form_(tile.form),
        task_(data_task_of(Conv2dShape(problem), tile.form, tile.unit_rows)) {
    const std::string text = std::string(kernels::gemm_elements()) + std::string(kernels::tensor_tiles()) +
                             std::string(kernels::box_copies()) + std::string(kernels::tensor_units()) +
                             std::string(kernels::scales()) + std::string(kernels::plain_sums()) +
                             std::string(kernels::parts()),
                      text_of_tiles =
                          text + std::string(few_channels_units_kernel) + std::string(few_channels_data_kernel);
    std::vector<devices::Definition> of_passes = definitions_of(problem.type, numbers_, tile_, 32, false, 0),
                                     of_tiles = of_passes;
    of_passes.push_back({"TILES", "0"}), of_tiles.push_back({"TILES", "1"});
    const auto add = [&](const char* symbol, std::int64_t value) {
      of_tiles.push_back({symbol, std::to_string(value)});
    };
    add("CHANNELS", form_.channels), add("FILTERS", form_.filters);
    add("TAPS_H", form_.taps_h), add("TAPS_W", form_.taps_w);
    add("STRIDE_H", form_.stride_h), add("STRIDE_W", form_.stride_w);
    add("DILATION_H", form_.dilation_h), add("DILATION_W", form_.dilation_w);
    add("FLIP", problem.flip), add("NHWC", problem.layout == Layout::nhwc);
    add("COLUMNS", form_.columns), add("ROWS", form_.rows), add("SLICES", form_.slices());
    add("CHUNKS", form_.chunks()), add("ALL_CHUNKS", form_.all_chunks());
    add("SIXTEENS", form_.sixteens()), add("BODIES", form_.bodies()), add("BLOCKS", form_.blocks);
    add("WIDTH", form_.width), add("HEIGHT", form_.height()), add("RING", form_.ring());
    add("MARGIN", form_.margin()), add("CELLS", form_.cells()), add("LEFT", form_.left());
    add("PITCH", form_.pitch());
    add("BIAS", 0), add("ACCUMULATE", problem.accumulate), add("RELU", 0);
    const devices::Device::Source sources[] = {
        {text_of_tiles, of_tiles, {.target = "sm_90a", .expected_seconds = 0.55, .starts_quickly = true}},
        {text, of_passes, {.target = "sm_90a", .expected_seconds = 0.1}}};
    const auto programs = device.build_all(sources);
    tiles_ = programs[0], passes_ = programs[1];
  }
  double compile_seconds() const override { return ProductLaunches::compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const split::Product product{.a = run.y, .b = run.w, .out = run.x, .bias = run.w, .workspace = {run.workspace}};
    const Conv2dElements all = elements_of(problem());
    append_scan(sequence, product, all.y, all.w, data_sampling(all.y));
    const devices::KernelArgument arguments[] = {std::as_bytes(std::span(&task_, 1)),
                                                 run.y.buffer.impl().get(),
                                                 run.y.offset_bytes / size(),
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 run.x.buffer.impl().get(),
                                                 run.x.offset_bytes / size(),
                                                 product.workspace.buffer.impl().get(),
                                                 (product.workspace.offset_bytes + workspace_.maxima) / 4};
    const std::int64_t groups = groups_of(task_, tile_.resident, units_);
    sequence.launch(tiles_, "few_channels_data", {{groups * group_items, 1}, {group_items, 1}}, arguments,
                    {.overlaps = true, .local_memory_bytes = form_.local_bytes()});
  }

  // Units that meet larger numbers than those that were looked at change their scale, so that samples of y do.
  static split::Sampling data_sampling(std::int64_t elements) {
    return {.a = split::sampling_of(elements, std::int64_t{1} << 24).a};
  }

 private:
  DataForm form_;
  DataTask task_;
};

}  // namespace

Answer data_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request,
                  std::span<const Tunable> domain) {
  if (std::string reason = refusal_of(problem); !reason.empty()) return reason;
  const Conv2dShape g(problem);
  const split::Numbers numbers = split::numbers_of(problem.type);
  const std::optional<DataTile> tile = best_tile(g, numbers, *device, request, domain);
  if (!tile && !request.tuning.empty())
    return fmt::format(
        "tuning {}: filters and the pixels of dx that a step meets do not go together so in local memory",
        request.tuning);
  if (!tile)
    return fmt::format("{} filters of {}x{} taps and the pixels of dx that a step meets do not fit local memory",
                       g.k_group, g.r, g.s);
  const DataTask task = data_task_of(g, tile->form, tile->unit_rows);
  if (groups_of(task, tile->resident, device->info().compute_units) > most_groups)
    return fmt::format("has {} groups of channels, and a launch counts {}", task.groups, most_groups);
  const Conv2dElements all = elements_of(problem);
  const double of_x = static_cast<double>(all.x * size_of(problem.type)),
               of_w = static_cast<double>(all.w * size_of(problem.type)),
               of_y = static_cast<double>(all.y * size_of(problem.type)),
               streamed = split::cycles_of_bytes((problem.accumulate ? 2 : 1) * of_x + of_w + of_y, *device),
               looked_at =
                   split::cycles_of_bytes(of_y / static_cast<double>(DataPlan::data_sampling(all.y).a) + of_w, *device);
  return Offer{
      .cost = {split::cost_of_cycles(
          2 * split::launch_cycles + split::others_wait + looked_at + std::max(tile->cycles, streamed), *device)},
      .bound = split::bound_of(split::numbers_of(problem.type), 1, static_cast<double>(tile->form.additions()),
                               longest_sum(problem), split::cutting_of(*device)),
      .workspace_bytes = split::Workspace(0, 0, numbers, 0).bytes(),
      .uses_only_fma = false,
      .tuning = tuning_of(*tile, request, domain),
      .plan = [=, tile = *tile] { return std::make_shared<DataPlan>(problem, *device, tile); },
  };
}

}  // namespace omniconv::operations::few_channels
