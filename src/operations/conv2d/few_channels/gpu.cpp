// Convolution forward of groups of few channels on the matrix units of compute capability 9.0: patches of x in local
// memory, from there through registers. fp32 by parts of fp16, 16-bit numbers as they are.
#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "embedded/few_channels.kernel.h"
#include "embedded/few_channels_units.kernel.h"
#include "operations/conv2d/few_channels/data.h"
#include "operations/conv2d/few_channels/forward_plan.h"
#include "operations/conv2d/gpu_text.h"

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

std::span<const Tunable> tunables() {
  static const std::vector<Tunable> all = {{"columns", {8, 16, 24, 32, 40, 48, 64}},
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

// Cycles of a compute unit of 9.0. README.md, "Cost", has what they stand for.
constexpr std::int64_t most_sides = 64;  // columns of a group's filters, where each has one for several pixels
constexpr double sector_cycles = 1.8, run_cycles = 0.8, piece_cycles = 6, box_cycles = 160, line_cycles = 0.6;

// Of storing a block of 64 pixels by so many columns, of pixels that are there.
double storing_cycles(const Conv2dShape& g, const Form& form) {
  const double columns = static_cast<double>(form.columns),
               runs = columns * 64 / static_cast<double>(g.nhwc ? 8 : form.width * form.side);
  if (form.is_boxed) {
    const std::int64_t line = std::min<std::int64_t>(128, (g.nhwc ? form.columns : form.width) * form.output_bytes);
    return box_cycles + line_cycles * static_cast<double>(64 * form.columns * form.output_bytes / line);
  }
  const std::int64_t line = g.nhwc ? g.k : g.q;
  const double unaligned = 1 - static_cast<double>(std::gcd(line, std::int64_t{8})) / 8;
  return 8 * columns * sector_cycles + runs * (run_cycles + unaligned * (2 * piece_cycles - sector_cycles));
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
               // What other groups do not hide of a patch, and of warpgroups that wait for each other.
      waiting = form.is_ahead() ? (tile.resident == 1 ? 800 : 300)
                                : 450 * static_cast<double>(form.parts * (tile.resident == 1 ? 3 : 1)),
               of_patch = waiting + 0.6 * static_cast<double>(form.patch_h() * form.patch_w()),
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
    if (side > 1 && (g.dilation_w > 1 || columns > most_sides)) return;
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

std::string refusal_of(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  if (problem.pass != Pass::forward) return "convolves forward and to the data alone";
  if (g.c_group > most_channels)
    return fmt::format("groups have {} channels, and records of pixels hold {}", g.c_group, most_channels);
  return extent_refusal(g);
}

class Plan final : public ForwardPlan {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const Tile& tile)
      : ForwardPlan(problem, device, task_of(Conv2dShape(problem), tile.form), tile.resident), form_(tile.form) {
    build(device, few_channels_units_kernel, few_channels_kernel,
          {{"CHANNELS", form_.channels},
           {"TAPS_H", form_.taps_h},
           {"TAPS_W", form_.taps_w},
           {"STRIDE_H", form_.stride_h},
           {"STRIDE_W", form_.stride_w},
           {"DILATION_H", form_.dilation_h},
           {"DILATION_W", form_.dilation_w},
           {"SIDE", form_.side},
           {"COLUMNS", form_.columns},
           {"HELD", form_.held},
           {"BLOCKS", form_.blocks},
           {"WIDTH", form_.width},
           {"TILE_H", form_.tile_rows()},
           {"WORKERS", form_.workers},
           {"FILLING", 0},
           {"LOOKERS", form_.items()},
           {"FOLD", form_.fold()},
           {"RECORDS", form_.records()},
           {"SIXTEENS", form_.sixteens()},
           {"BODY", form_.body()},
           {"PATCH_H", form_.patch_h()},
           {"PATCH_W", form_.patch_w()},
           {"PLANE_W", form_.plane_w()},
           {"AHEAD", form_.is_ahead()},
           {"BOXED", form_.is_boxed},
           {"BUFFERS", form_.buffers},
           {"STAGED_BYTES", form_.staged_bytes()}});
    if (!form_.is_boxed) return;
    boxes_ = *boxes_of(Conv2dShape(problem), form_);
    if (problem.type == DataType::bf16) boxes_.element = devices::TensorMap::Element::bf16;
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    devices::TensorMap boxes = boxes_;
    boxes.buffer = run.y.buffer.impl().get(), boxes.offset_bytes = run.y.offset_bytes;
    const bool is_boxed = form_.is_boxed && split::is_aligned(run.y);
    if (!is_boxed) boxes.offset_bytes = 0;  // which is not read
    std::vector<devices::KernelArgument> before;
    if (form_.is_boxed) before = {&boxes, static_cast<std::int32_t>(is_boxed)};
    append_launch(sequence, run, "few_channels", groups_of(task_, tile_.resident, units_), form_.items(),
                  form_.local_bytes(), before);
  }

 private:
  Form form_;
  devices::TensorMap boxes_;  // of y without its buffer
};

Answer offer_of(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  const Conv2dShape g(problem);
  const std::optional<Tile> tile =
      best_tile(problem, split::numbers_of(problem.type), *device, request, streams_of(problem, *device).streamed);
  if (!tile && !request.tuning.empty())
    return fmt::format("tuning {}: filters and a patch of x do not go together so in local memory", request.tuning);
  if (!tile)
    return fmt::format("filters of {}x{} taps and the patch of x that a tile meets do not fit local memory", g.r, g.s);
  const Task task = few_channels::task_of(g, tile->form);
  if (groups_of(task, tile->resident, device->info().compute_units) > most_groups)
    return fmt::format("has {} sets of filters, and a launch counts {} groups", task.sets, most_groups);
  Offer offer = forward_offer(problem, *device, tile->cycles, tile->form.bodies(), tile->form.body());
  offer.tuning = tuning_of(*tile);
  offer.plan = [=, tile = *tile] { return std::make_shared<Plan>(problem, *device, tile); };
  return offer;
}

class FewChannelsGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/few_channels/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, group_items); !reason.empty()) return reason;
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
