#include "operations/conv2d/depthwise/planes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "core/checked.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

using Sides = DepthwiseSides;

constexpr std::int64_t most_bytes = 48 << 10;  // of local memory, with the weights beside the planes
constexpr std::int64_t most_reads = 16;        // vectors of planes that a work item has on their way, in registers
constexpr std::int64_t most_copies = 32;       // likewise, where they are copied by themselves
constexpr std::int64_t most_small = 256;       // pixels of planes that local memory is chosen for
constexpr std::int64_t least_piece = 128;      // bytes of a pixel's channels that a group reads of them under NHWC
constexpr std::int64_t registers_of_unit = 65536;

// Of a group: its planes, of the input and then under NCHW of the output; the vectors that a work item reads.
std::int64_t planes_bytes(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  const Sides of(problem);
  const std::int64_t in = of.in_h * of.in_w, out = of.out_h * of.out_w, size = size_of(problem.type);
  return round_up(t.planes * size * (of.g.nhwc ? in * t.lanes * t.channels : std::max(in, out)), 16);
}
std::int64_t reads_of(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  const Sides of(problem);
  return divide_up(t.planes * of.in_h * of.in_w * (of.g.nhwc ? t.lanes * t.channels : 1), t.copied * t.group);
}

// Turns that 32 work items take which read `words` words each from local memory of 32 banks.
std::int64_t turns_of(const Conv2dProblem& problem, const DepthwiseTiling& t, std::int64_t words) {
  const Sides of(problem);
  const bool data = problem.pass == Pass::backward_data;
  const std::int64_t size = size_of(problem.type), pixel = of.g.nhwc ? t.lanes * t.channels : 1;
  const auto begin_of = [&](std::int64_t item) {  // the word at which its block of the input begins
    const std::int64_t index = item / t.lanes, block = index % t.blocks(), plane = index / t.blocks();
    const std::int64_t row = block / t.column_blocks * t.rows, column = block % t.column_blocks * t.columns;
    const std::int64_t top = data ? row / of.g.stride_h : row * of.g.stride_h,
                       left = data ? column / of.g.stride_w : column * of.g.stride_w;
    const std::int64_t at = ((plane * of.in_h + top) * of.in_w + left) * pixel + item % t.lanes * t.channels;
    return at * size / 4;
  };
  std::int64_t turns = 0;
  const std::int64_t together = 32 / words;  // as many as the banks give words to
  for (std::int64_t first = 0; first < 32; first += together) {
    std::array<std::vector<std::int64_t>, 32> banks;
    for (std::int64_t item = first; item < first + together; ++item)
      for (std::int64_t word = begin_of(item), i = 0; i < words; ++i) {
        std::vector<std::int64_t>& bank = banks[static_cast<std::size_t>((word + i) % 32)];
        if (std::find(bank.begin(), bank.end(), word + i) == bank.end()) bank.push_back(word + i);
      }
    std::size_t most = 1;
    for (const std::vector<std::int64_t>& bank : banks) most = std::max(most, bank.size());
    turns += static_cast<std::int64_t>(most);
  }
  return turns;
}

// What planes in local memory take.
struct PlanesModel {
  double instructions;    // of a work item, about
  double cycles;          // of the launch, on an H200
  std::int64_t resident;  // no more than are needed, nor than registers allow
};
PlanesModel model_of(const Conv2dProblem& problem, const DepthwiseTiling& t, const devices::Device& device) {
  const Sides of(problem);
  const Conv2dShape& g = of.g;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const std::int64_t size = size_of(problem.type), vector = g.nhwc ? t.channels : t.x_vector;
  const std::int64_t words = std::max<std::int64_t>(vector * size / 4, 1), taps = g.r * g.s;
  // Of rows of the input, and of what is stored under NCHW, which goes through local memory.
  const std::int64_t columns = std::min(t.along.count, of.in_w);
  const std::int64_t of_row = g.nhwc || vector == 1 ? columns : divide_up(columns - 1, vector) + 1;
  const std::int64_t loads = std::min(t.down.count, of.in_h) * of_row, pixels = t.rows * t.columns;
  // Under NHWC neighbouring pixels lie in lines of their own.
  const double lines = g.nhwc ? 32.0 / real(t.lanes) : 1;
  const double reads = real(reads_of(problem, t)), read_turns = std::max(lines, real(t.copied * size) / 4);
  const double writes = g.nhwc ? real(pixels) : real(divide_up(t.planes * of.out_h * of.out_w, t.out_copied * t.group));
  const double write_turns = std::max(lines, real((g.nhwc ? t.channels : t.out_copied) * size) / 4);
  // Weights: a word of each channel, in lines of a cache; or those of a group's channels, once, and then their vectors.
  // Or each work item's own, by vectors that lie in lines of their own.
  const double own = real(taps * t.channels) / real(t.tap_vector);
  const double weights =
      t.alone > 0 ? own : real(taps) * (g.nhwc ? 2 + 2 * real(t.lanes * t.channels) / real(t.group) : 1);
  const double weight_turns = t.alone > 0 ? own * real(std::min<std::int64_t>(t.lanes, 32))
                              : g.nhwc    ? 2 * real(taps) + weights
                                       : real(taps) * (1 + std::min(32.0, 32.0 / real(t.blocks())) * real(taps) / 32);
  const double stores = g.nhwc ? 0 : real(pixels);
  const double met = real(taps) / (problem.pass == Pass::backward_data ? real(g.stride_h * g.stride_w) : 1);
  const double instructions = 60 + (t.async > 0 ? 2 : 3) * reads + weights + 1.2 * real(loads) +
                              real(pixels * t.channels) * met + stores + 3 * writes;
  const double turns = 2 * reads * read_turns + weight_turns + real(loads * turns_of(problem, t, words)) +
                       (stores + writes * write_turns * (g.nhwc ? 1 : 2));
  const std::int64_t units = std::max(device.info().compute_units, 1), warps = t.group / 32;
  const std::int64_t groups = depthwise_groups(problem, t, problem.n), of_unit = divide_up(groups, units);
  // What a compute unit holds: by registers, with those of addresses and a row at least, by local memory and by work
  // items.
  const std::int64_t row = columns * (g.nhwc ? t.channels : 1), held = (t.holds_taps ? taps : 2 * g.s) * t.channels;
  const std::int64_t read = t.async > 0 ? 0 : reads_of(problem, t) * std::max<std::int64_t>(t.copied * size / 4, 1);
  const std::int64_t at_first = read + (t.alone > 0 ? taps * t.channels : taps);  // on their way together
  const std::int64_t registers = round_up(24 + std::max(pixels * t.channels + held + row, at_first), 8);
  std::int64_t resident = std::clamp<std::int64_t>(
      std::min(divide_up(of_unit * t.group, 128), registers_of_unit / (registers * 128)), 1, 8);
  if (resident == 7) resident = 6;  // as may be asked for
  const std::int64_t at_once = std::clamp<std::int64_t>(
      std::min({resident * 128 / t.group, (200 << 10) / planes_bytes(problem, t), 2048 / t.group}), 1, 32);
  constexpr double latency = 1000, start = 40, bytes_of_cycle = 18;  // of memory, of a group
  const auto together = [](double a, double b) { return std::max(a, b) + std::min(a, b) / 4; };  // side by side, mostly
  const double busy = real(of_unit * warps) * together(instructions / 4, turns);
  const double memory = least_bytes(problem) / real(units) / bytes_of_cycle;
  const double waits = latency * real(divide_up(of_unit, at_once)) + start * real(of_unit);
  // What nothing is left to hide: the last group's instructions, and what it writes.
  const double last = std::max(1.5 * instructions, busy / real(of_unit)) + memory / 2 / real(of_unit);
  return {instructions, together(busy, memory) + waits + last, resident};
}

}  // namespace

std::string depthwise_planes_refusal(const Conv2dProblem& problem, const DepthwiseTiling& t,
                                     const devices::Device& device) {
  const Conv2dShape g(problem);
  const auto refused = [&](const char* what, std::int64_t value, std::int64_t most) {
    return fmt::format("planes={}: {} {}, and at most {}", t.planes, what, value, most);
  };
  if (problem.pass == Pass::backward_filter)
    return fmt::format("planes={}: must be 0 for the filter's gradient", t.planes);
  if (g.c_group != 1 || g.k_group != 1) return refused("channels of a group are", std::max(g.c_group, g.k_group), 1);
  const std::int64_t most_items = std::min(DepthwiseTiling::most_planes_items, device.facts().max_group_items);
  if (t.group > most_items) return refused("the work items of a group are", t.group, most_items);
  if (const std::int64_t bytes = t.copied * size_of(problem.type); t.async > 0 && bytes != 16)
    return fmt::format("async=1: vectors are of {} bytes, and must be of 16", bytes);
  const std::int64_t bytes =
      planes_bytes(problem, t) + (t.stages_taps ? round_up(depthwise_staged_bytes(problem, t), 16) : 0);
  if (const std::int64_t most = std::min(device.info().local_memory_bytes, most_bytes); bytes > most)
    return refused("the bytes of local memory are", bytes, most);
  const std::int64_t reads = reads_of(problem, t), most = t.async > 0 ? most_copies : most_reads;
  if (reads > most) return refused("the vectors that a work item reads are", reads, most);
  return {};
}

std::optional<DepthwiseTiling> depthwise_planes_tiling(const Conv2dProblem& problem, DepthwiseTiling t,
                                                       const devices::Device& device) {
  const Sides of(problem);
  if (problem.pass == Pass::backward_filter || of.in_group * of.out_group != 1 ||
      std::max(of.in_h * of.in_w, of.out_h * of.out_w) > most_small)
    return {};
  // Pieces of less are read with their neighbours in memory.
  const std::int64_t of_unit = t.channels * size_of(problem.type);
  std::int64_t least_lanes = 1;
  while (of.g.nhwc && least_lanes < 32 && least_lanes * of_unit < least_piece && least_lanes < t.units)
    least_lanes *= 2;
  const bool may_copy = device.facts().compute_capability >= 80;
  std::optional<DepthwiseTiling> best;
  double least = std::numeric_limits<double>::infinity();
  for (t.rows = 1; t.rows <= most_depthwise_block; ++t.rows)
    for (t.columns = 1; t.columns <= most_depthwise_block; ++t.columns)
      for (t.lanes = least_lanes; t.lanes <= 2 * least_lanes && t.lanes <= (of.g.nhwc ? 32 : 1); t.lanes *= 2)
        for (t.planes = 1; t.planes <= 64; t.planes *= 2) {
          fill_depthwise(problem, t);
          if (t.group > DepthwiseTiling::most_items) break;
          // What is there by itself needs no registers on its way; a work item's own weights await no barrier.
          t.async = may_copy && t.copied * size_of(problem.type) == 16 ? 1 : 0;
          t.alone = depthwise_may_hold_alone(problem, t) ? 1 : 0;
          fill_depthwise(problem, t);
          if (!t.unrolls_rows || !depthwise_tiling_refusal(problem, t, device).empty()) continue;
          if (reads_of(problem, t) > most_reads) continue;  // work items would be few
          const PlanesModel model = model_of(problem, t, device);
          if (model.cycles < least) least = model.cycles, best = t, best->resident = model.resident;
        }
  return best;
}

double depthwise_planes_instructions(const Conv2dProblem& problem, const DepthwiseTiling& t,
                                     const devices::Device& device) {
  return model_of(problem, t, device).instructions;
}

}  // namespace omniconv::operations
