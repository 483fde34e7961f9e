// Convolution forward of groups of few channels on the matrix units of compute capability 9.0: patches of x in local
// memory, from there through registers. fp32 by parts of fp16, 16-bit numbers as they are.
#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "embedded/few_channels.kernel.h"
#include "embedded/few_channels_patch.kernel.h"
#include "embedded/few_channels_stores.kernel.h"
#include "embedded/few_channels_units.kernel.h"
#include "operations/conv2d/few_channels/data.h"
#include "operations/conv2d/few_channels/geometry.h"
#include "operations/conv2d/gpu_text.h"
#include "operations/split/products.h"

namespace omniconv::operations {
namespace few_channels {
namespace {

namespace split = split_gemm;

// What groups of work items make, and how many of them share a compute unit.
struct Tile {
  Form form = {};
  std::int64_t resident = 1;
  double cycles = 0;  // of a compute unit, for all
};

constexpr std::int64_t most_items = 512;  // of a group

std::span<const Tunable> tunables() {
  static const std::vector<Tunable> all = {{"columns", {8, 16, 24, 32, 40, 48, 56, 64}},
                                           {"held", {1, 2, 3, 4, 6, 8}},
                                           {"blocks", {1, 2}},
                                           {"width", {16, 32, 64, 128}},
                                           {"side", {1, 2, 4}},
                                           {"workers", {2, 4}},
                                           {"resident", {1, 2, 3}}};
  return all;
}
Tuning tuning_of(const Tile& tile) {
  return {{"columns", tile.form.columns}, {"held", tile.form.held}, {"blocks", tile.form.blocks},
          {"width", tile.form.width},     {"side", tile.form.side}, {"workers", tile.form.workers},
          {"resident", tile.resident}};
}

// In local memory and in registers.
bool fits(const Tile& tile, const devices::Device& device) {
  if (tile.resident > 2 && tile.form.columns > 32) return false;
  if (tile.form.workers > 2 && tile.resident > 1) return false;
  constexpr std::int64_t rest = 1024 + 64;  // what the device keeps of each group's, and what the text declares
  return tile.form.local_bytes() <= device.facts().most_local_memory_bytes / tile.resident - rest;
}

// Groups of a launch: a number of them for each set of filters.
std::int64_t groups_of(const Task& task, std::int64_t resident, std::int64_t units) {
  const std::int64_t of_set = std::clamp<std::int64_t>(units * resident / task.sets, 1, task.tiles);
  return of_set * task.sets;
}

constexpr std::int64_t most_sides = 32;  // columns of a group's filters, where each has one for several pixels

// Cycles of a compute unit of 9.0. README.md, "Cost", has what they stand for.
constexpr double sector_cycles = 1.8, run_cycles = 0.8, piece_cycles = 6, box_cycles = 160, line_cycles = 0.6,
                 pixel_cycles = 0.6, ahead_cycles = 300, ahead_alone_cycles = 800, loading_cycles = 450;

// Of storing a block of 64 pixels by so many columns, of pixels that are there.
double storing_cycles(const Conv2dShape& g, const Form& form) {
  const double columns = static_cast<double>(form.columns),
               runs = columns * 64 / static_cast<double>(g.nhwc ? 8 : form.width * form.side);
  if (form.is_boxed)
    return box_cycles + line_cycles * static_cast<double>(64 * form.columns * form.output_bytes / form.box_line());
  const std::int64_t line = g.nhwc ? g.k : g.q;
  const double unaligned = 1 - static_cast<double>(std::gcd(line, std::int64_t{8})) / 8;
  return 2 * columns * static_cast<double>(form.output_bytes) * sector_cycles +
         runs * (run_cycles + unaligned * (2 * piece_cycles - sector_cycles));
}
double cycles_of(const Conv2dShape& g, const Tile& tile, const split::Numbers& numbers, const devices::Device& device) {
  const Form& form = tile.form;
  const Task task = task_of(g, form);
  const double columns = static_cast<double>(form.columns), products = static_cast<double>(numbers.products),
               of_sixteen = 4 + std::max(products * std::max(columns / 2, 32.0),
                                         16 * static_cast<double>(form.parts) + products * columns / 4),
               there = static_cast<double>(g.p * g.q) /
                       static_cast<double>(task.tiles_h * form.tile_rows() * task.tiles_w * form.width * form.side),
               of_block = static_cast<double>(form.sixteens()) * of_sixteen + there * storing_cycles(g, form),
               blocks = static_cast<double>(form.workers * form.blocks * form.held),
               // What other groups do not hide of a patch.
      waiting = form.is_ahead() ? (tile.resident == 1 ? ahead_alone_cycles : ahead_cycles)
                                : loading_cycles * static_cast<double>(form.parts * (tile.resident == 1 ? 3 : 1)),
               of_patch = waiting + pixel_cycles * static_cast<double>(form.patch_h() * form.patch_w()),
               of_filters = 3000 + static_cast<double>(form.filter_bytes()) / 32 / 256 * 500;
  const std::int64_t units = device.info().compute_units, of_set = groups_of(task, tile.resident, units) / task.sets,
                     tiles = std::max(divide_up(std::int64_t{task.tiles} * task.sets, units),
                                      divide_up(task.tiles, of_set));
  return of_filters + static_cast<double>(tiles) * (blocks * of_block + of_patch);
}

// The tile of the fewest cycles, of exactly the tuning where there is one. Of those that memory hides, in so many
// cycles, one of few pixels, whose results leave evenly.
std::optional<Tile> best_tile(const Conv2dProblem& problem, const split::Numbers& numbers,
                              const devices::Device& device, const SolverOptions& request, double streamed) {
  const Conv2dShape g(problem);
  const std::int64_t size = size_of(problem.type);
  const bool can_be_boxed = !problem.accumulate;
  std::optional<Tile> best;
  const Tuning wanted = Tuning::parse(request.tuning);
  for_each_tuning(tunables(), [&](const Tuning& each) {
    if (!wanted.is_empty() && !(each == wanted)) return;
    const std::int64_t side = each.at("side"), columns = side * g.k_group;  // of all filters of a group
    if (side > 1 && (g.dilation_w > 1 || (columns > most_sides && wanted.is_empty()))) return;
    Tile tile{.form = form_of(g, each.at("columns"), each.at("held"), each.at("blocks"), each.at("width"), side,
                              each.at("workers"), numbers.planes(), size),
              .resident = each.at("resident")};
    if (tile.form.width == 128) return;  // of gradients alone
    tile.form.is_boxed = can_be_boxed && boxes_of(g, tile.form).has_value();
    const bool is_wide = tile.form.columns > 8 && tile.form.columns - 8 >= columns,
               holds_more = tile.form.held > divide_up(columns, tile.form.columns);
    if (holds_more || (is_wide && wanted.is_empty())) return;
    tile.form.buffers = tile.form.is_boxed ? 2 : 1;
    if (!fits(tile, device)) tile.form.buffers = 1;
    if (!fits(tile, device)) return;
    tile.cycles = cycles_of(g, tile, numbers, device);
    const auto order = [&](const Tile& of) {
      return std::tuple(std::max(of.cycles, streamed), of.form.blocks, of.cycles);
    };
    if (!best || order(tile) < order(*best)) best = tile;
  });
  return best;
}

// Numbers that the text counts in 32 bits.
std::string extent_refusal(const Conv2dShape& g) {
  constexpr std::int64_t most_extent = std::int64_t{1} << 24, most = std::int64_t{1} << 30;
  for (const std::int64_t extent :
       {g.n, g.c, g.h, g.w, g.k, g.r, g.s, g.p, g.q, g.pad_top, g.pad_left, g.stride_h, g.stride_w, g.dilation_h * g.r,
        g.dilation_w * g.s, g.p * g.stride_h, g.q * g.stride_w})
    if (extent >= most_extent) return fmt::format("an extent of {} passes the {} that it counts", extent, most_extent);
  if (g.h * g.w >= most / g.c) return fmt::format("has images of {} numbers, and it counts {}", g.h * g.w * g.c, most);
  if (g.n * divide_up(g.p, 8) >= most / g.q || g.r * g.s >= 1 << 16) return "has 2^30 pixels, or 2^16 taps";
  return {};
}

std::string refusal_of(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (problem.pass != Pass::forward) return "convolves forward and to the data alone";
  if (g.c_group > most_channels)
    return fmt::format("groups have {} channels, and records of pixels hold {}", g.c_group, most_channels);
  return extent_refusal(g);
}

class Plan final : public Conv2dPlanBody, split::ProductLaunches {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const Tile& tile)
      : Conv2dPlanBody(problem),
        ProductLaunches(problem.type, problem.type, split::numbers_of(problem.type), device,
                        split::Tile{.columns = 32, .resident = tile.resident},
                        split::Workspace(0, 0, split::numbers_of(problem.type), 0)),
        form_(tile.form),
        task_(few_channels::task_of(Conv2dShape(problem), tile.form)) {
    const std::string text = std::string(kernels::gemm_elements()) + std::string(kernels::tensor_tiles()) +
                             std::string(kernels::box_copies()) + std::string(kernels::tensor_units()) +
                             std::string(kernels::scales()) + std::string(kernels::plain_sums()) +
                             std::string(kernels::parts()),
                      text_of_tiles = text + std::string(few_channels_units_kernel) +
                                      std::string(few_channels_patch_kernel) + std::string(few_channels_stores_kernel) +
                                      std::string(few_channels_kernel);
    std::vector<devices::Definition> of_passes = definitions_of(problem.type, numbers_, tile_, 32, false, 0),
                                     of_tiles = of_passes;
    of_passes.push_back({"TILES", "0"}), of_tiles.push_back({"TILES", "1"});
    const auto add = [&](const char* symbol, std::int64_t value) {
      of_tiles.push_back({symbol, std::to_string(value)});
    };
    add("CHANNELS", form_.channels), add("TAPS_H", form_.taps_h), add("TAPS_W", form_.taps_w);
    add("STRIDE_H", form_.stride_h), add("STRIDE_W", form_.stride_w);
    add("DILATION_H", form_.dilation_h), add("DILATION_W", form_.dilation_w);
    add("FLIP", problem.flip), add("NHWC", problem.layout == Layout::nhwc);
    add("COLUMNS", form_.columns), add("HELD", form_.held), add("BLOCKS", form_.blocks);
    add("WIDTH", form_.width), add("SIDE", form_.side), add("WORKERS", form_.workers), add("LOOKERS", form_.items());
    add("BODY", form_.body()), add("AHEAD", form_.is_ahead());
    add("BOXED", form_.is_boxed), add("BUFFERS", form_.buffers), add("STAGED_BYTES", form_.staged_bytes());
    add("FOLD", form_.fold()), add("RECORDS", form_.records()), add("SIXTEENS", form_.sixteens());
    add("PATCH_H", form_.patch_h()), add("PATCH_W", form_.patch_w()), add("PLANE_W", form_.plane_w());
    add("BIAS", problem.bias ? 2 : 0), add("ACCUMULATE", problem.accumulate), add("RELU", problem.relu);
    const devices::Device::Source sources[] = {
        {text_of_tiles, of_tiles, {.target = "sm_90a", .expected_seconds = 0.65, .starts_quickly = true}},
        {text, of_passes, {.target = "sm_90a", .expected_seconds = 0.1}}};
    const auto programs = device.build_all(std::span(sources).first(numbers_.are_scaled ? 2 : 1));
    tiles_ = programs.front(), passes_ = programs.back();
    if (!form_.is_boxed) return;
    boxes_ = *boxes_of(Conv2dShape(problem), form_);
    boxes_.element = split::box_element(problem.type);
  }
  double compile_seconds() const override { return ProductLaunches::compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    const Operand& bias = problem().bias ? run.bias : run.w;  // without one some array, which is not read
    const split::Product product{.a = run.x, .b = run.w, .out = run.y, .bias = bias, .workspace = {run.workspace}};
    const Conv2dElements all = elements_of(problem());
    append_scan(sequence, product, all.x, all.w, {});
    const bool is_boxed = form_.is_boxed && split::is_aligned(run.y);
    const devices::TensorMap boxes = is_boxed ? split::placed(boxes_, run.y) : devices::TensorMap{};
    const devices::KernelArgument arguments[] = {&boxes,
                                                 static_cast<std::int32_t>(is_boxed),
                                                 std::as_bytes(std::span(&task_, 1)),
                                                 run.x.buffer.impl().get(),
                                                 run.x.offset_bytes / size(),
                                                 run.w.buffer.impl().get(),
                                                 run.w.offset_bytes / size(),
                                                 run.y.buffer.impl().get(),
                                                 run.y.offset_bytes / size(),
                                                 bias.buffer.impl().get(),
                                                 bias.offset_bytes / size(),
                                                 product.workspace.buffer.impl().get(),
                                                 (product.workspace.offset_bytes + workspace_.maxima) / 4};
    const std::int64_t groups = groups_of(task_, tile_.resident, units_);
    sequence.launch(tiles_, "few_channels", {{groups * form_.items(), 1}, {form_.items(), 1}},
                    std::span(arguments).subspan(form_.is_boxed ? 0 : 2),
                    {.overlaps = numbers_.are_scaled, .local_memory_bytes = form_.local_bytes()});
  }

 private:
  Form form_;
  Task task_;
  devices::TensorMap boxes_;  // of y without its buffer
};

// Of `terms` of the definition. README.md, "Error", derives it.
ErrorBound bound_of(const Form& form, const split::Numbers& numbers, double terms, const devices::Device& device) {
  const split::Cutting cutting{.of_instruction = split::cutting_of(device).of_instruction,
                               .instructions = static_cast<double>(form.body())};
  const double bodies = static_cast<double>(form.bodies()), cut = cutting.of_instruction * cutting.instructions;
  if (numbers.products > 1) return split::bound_of(numbers, bodies, 1, terms, cutting);
  if (numbers.are_scaled) return {.chain = bodies + 1, .constant = 2 + 0x1p13 + cut, .absolute = terms * 0x1p-38};
  return {.chain = bodies + 1, .constant = cut};
}

Answer offer_of(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  const Conv2dShape g(problem);
  const split::Numbers numbers = split::numbers_of(problem.type);
  const Conv2dElements all = elements_of(problem);
  const double of_x = static_cast<double>(all.x * size_of(problem.type)),
               of_w = static_cast<double>(all.w * size_of(problem.type)),
               of_y = static_cast<double>(all.y * size_of(problem.type)),
               streamed = split::cycles_of_bytes(of_x + of_w + (problem.accumulate ? 2 : 1) * of_y, *device),
               looked_at = split::cycles_of_bytes(of_x + of_w, *device);
  const std::optional<Tile> tile = best_tile(problem, numbers, *device, request, streamed);
  if (!tile && !request.tuning.empty())
    return fmt::format("tuning {}: filters and a patch of x do not go together so in local memory", request.tuning);
  if (!tile)
    return fmt::format("filters of {}x{} taps and the patch of x that a tile meets do not fit local memory", g.r, g.s);
  const Task task = few_channels::task_of(g, tile->form);
  if (groups_of(task, tile->resident, device->info().compute_units) > most_groups)
    return fmt::format("has {} sets of filters, and a launch counts {} groups", task.sets, most_groups);
  return Offer{
      .cost = {split::cost_of_cycles(
          (numbers.are_scaled ? 2 * split::launch_cycles + split::others_wait + looked_at : split::launch_cycles) +
              std::max(tile->cycles, streamed),
          *device)},
      .bound = bound_of(tile->form, numbers, longest_sum(problem), *device),
      .workspace_bytes = split::Workspace(0, 0, numbers, 0).bytes(),
      .uses_only_fma = false,
      .tuning = tuning_of(*tile),
      .plan = [=, tile = *tile] { return std::make_shared<Plan>(problem, *device, tile); },
  };
}

class FewChannelsGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/few_channels/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, most_items); !reason.empty()) return reason;
    if (std::string reason = split::tensor_refusal(*device); !reason.empty()) return reason;
    if (problem.pass == Pass::backward_data) return data_offer(problem, device, request, tunables());
    if (std::string reason = refusal_of(problem); !reason.empty()) return reason;
    return offer_of(problem, device, request);
  }
  std::span<const Tunable> tunables() const override { return few_channels::tunables(); }
};

}  // namespace
}  // namespace few_channels

const Conv2dSolver& conv2d_few_channels_gpu() {
  static const few_channels::FewChannelsGpu solver;
  return solver;
}

}  // namespace omniconv::operations
