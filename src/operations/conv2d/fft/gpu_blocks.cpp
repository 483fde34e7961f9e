#include "operations/conv2d/fft/gpu_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/checked.h"
#include "operations/conv2d/gpu_products.h"
#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

// Inputs and targets of a block take so much at the most, unless the tuning says otherwise: enough for every compute
// unit, and little of a GPU's memory.
constexpr double block_bytes = 1 << 30;
// Tiles of a block, by the tuning; 0: as many as `block_bytes` hold.
constexpr std::array<std::int64_t, 6> tile_limits = {0, 16384, 4096, 1024, 256, 64};
constexpr std::int64_t least_tiles = 16;
constexpr std::int64_t alignment = 256;  // of the workspace's arrays

std::int64_t aligned_bytes(std::int64_t elements) {
  return round_up(4 * elements, alignment);
}
double real(std::int64_t value) {
  return static_cast<double>(value);
}

}  // namespace

std::span<const Tunable> fft_gpu_tunables() {
  static const std::array<Tunable, 2> all = {
      {{"tile", {fft_gpu_sides.begin(), fft_gpu_sides.end()}}, {"tiles", {tile_limits.begin(), tile_limits.end()}}}};
  return all;
}

// As many as leave a compute unit room for several groups, and fewer where the device has less. Where a launch brings
// local memory, it may be more than a text may declare.
FftGpuGroup::FftGpuGroup(std::int64_t of_side, const devices::Device& device) : side(of_side) {
  entries = side == 16 ? 16 : side == 32 ? 8 : side == 64 ? 4 : 1;
  constexpr std::int64_t declared = 48 << 10;  // that every CUDA device has
  const std::int64_t has = device.info().local_memory_bytes, brought = device.facts().most_local_memory_bytes;
  const auto fits = [&] {
    return local_bytes() <= std::max(std::min(declared, has), brought > has ? brought : 0) &&
           items() <= device.facts().max_group_items;
  };
  while (entries > 1 && !fits()) entries /= 2;
  of_launch = local_bytes() > declared && brought > has;
  resident = side == 16 ? 6 : side == 32 ? 4 : side == 64 ? std::max<std::int64_t>(8 / entries, 1) : 1;
  resident_of_filters = side == 32 ? 3 : resident;
}

// Where work items of a warp read neighbouring columns of all entries, or pairs of rows, each reads from a bank of its
// own.
std::int64_t FftGpuGroup::pitch() const {
  constexpr std::int64_t banks = 32;
  const std::int64_t least = side / 2 * (2 * side + 1), apart = banks / entries % banks;
  return least + (apart - least % banks + banks) % banks;
}

FftGpuBlocks::FftGpuBlocks(const Conv2dProblem& problem, std::int64_t side, const devices::Device& device,
                           bool prepared_filters)
    : shape(problem, side),
      group(side, device),
      fused(shape.is_depthwise() && !shape.of_filter),
      prepared(prepared_filters),
      tile_limit(0),
      block_tiles(shape.tiles) {}

double FftGpuBlocks::bytes_of_tile() const {
  return 8.0 * real(matrices()) * real(shape.source + shape.target);
}

void FftGpuBlocks::set_block_tiles(std::int64_t most) {
  const std::int64_t even = divide_up(shape.tiles, divide_up(shape.tiles, most));
  block_tiles = std::min(round_up(even, 4), shape.tiles);
}

std::int64_t FftGpuBlocks::blocks() const {
  return divide_up(shape.tiles, block_tiles);
}
FftGpuBlock FftGpuBlocks::block(std::int64_t i) const {
  const std::int64_t first = i * block_tiles;
  return {first, std::min(block_tiles, shape.tiles - first), shape.of_filter && i > 0};
}

std::int64_t FftGpuBlocks::targets_at() const {
  return fused ? 0 : aligned_bytes(input_elements(block_tiles));
}
std::int64_t FftGpuBlocks::filters_at() const {
  return targets_at() + (fused ? 0 : aligned_bytes(target_elements(block_tiles)));
}
std::int64_t FftGpuBlocks::rest_at() const {
  return filters_at() + (prepared ? 0 : aligned_bytes(filter_elements()));
}
std::int64_t FftGpuBlocks::workspace_bytes() const {
  std::int64_t most = 0;
  for (const auto& [product, offer] : products) most = std::max(most, offer.workspace_bytes);
  return rest_at() + most;
}

GemmTask FftGpuBlocks::product(const FftGpuBlock& block) const {
  GemmProblem product;
  product.batch = matrices();
  if (shape.of_filter) {
    product.m = 2 * shape.target, product.n = 2 * shape.source, product.k = block.count;
    product.transpose_a = true;
  } else {
    product.m = block.count, product.n = 2 * shape.target, product.k = 2 * shape.source;
  }
  GemmTask task = task_for(product);
  task.accumulate = block.adds;
  return task;
}

// To the filter two products' sums are added up in the end.
ErrorBound FftGpuBlocks::bound(const Conv2dProblem& problem) const {
  ErrorBound bound = fft_bound(problem, shape);
  double longest = fused ? 2 : 0;
  for (const auto& [of, offer] : products) longest = std::max(longest, offer.bound.chain);
  bound.chain = longest + (shape.of_filter ? real(blocks()) : 0);
  return bound;
}

std::variant<FftGpuBlocks, std::string> FftGpuBlocks::cut(const Conv2dProblem& problem, std::int64_t side,
                                                          const DevicePointer& device, std::int64_t tile_limit,
                                                          std::int64_t workspace_limit, bool prepared_filters) {
  FftGpuBlocks all(problem, side, *device, prepared_filters);
  if (const std::int64_t takes = all.group.local_bytes(), has = device->info().local_memory_bytes;
      takes > has && !all.group.of_launch)
    return fmt::format("a group takes {} bytes of local memory, and the device has {}", takes, has);
  if (std::string reason = group_refusal(*device, all.group.items()); !reason.empty()) return reason;
  // In reals first, so that what follows stays below 2^63.
  const double most_bytes = real(device->info().max_buffer_bytes),
               of_tiles = all.fused ? 0 : all.bytes_of_tile() * real(std::min(all.shape.tiles, least_tiles)),
               of_filters = 16.0 * real(all.matrices()) * real(all.shape.source) * real(all.shape.target);
  if (std::max(of_tiles, of_filters) > most_bytes / 2)
    return fmt::format("a few of its tiles, or its filters, take {:.0f} bytes of workspace, and a buffer has {:.0f}",
                       std::max(of_tiles, of_filters), most_bytes);
  if (all.fused) {
    if (tile_limit > 0) return "tiles of groups of one channel and one filter are not cut into blocks";
    return all;
  }
  all.tile_limit = tile_limit;
  const double room = std::min(block_bytes, most_bytes / 4) / all.bytes_of_tile();
  const auto fitting = std::max(static_cast<std::int64_t>(std::min(room, 1e9)), least_tiles);
  all.set_block_tiles(tile_limit > 0 ? std::min(tile_limit, fitting) : fitting);
  if (all.blocks() > most_tile_blocks)
    return fmt::format("its {} tiles would be cut into {} blocks, and {} are the most: take fewer images at a time",
                       all.shape.tiles, all.blocks(), most_tile_blocks);
  if (std::string reason = choose_block_products(all, device, all.shape.of_filter, least_tiles, workspace_limit);
      !reason.empty())
    return reason;
  return all;
}

PreparedFormat FftGpuBlocks::format(const Conv2dProblem& problem) const {
  return {fmt::format("w of {}{} k{}c{}r{}s{}, {} groups, by bin, source and target channel, {}spectra of {}x{}{}",
                      word_of(problem.layout), problem.pass == Pass::forward ? "" : " bwd_data", problem.k, problem.c,
                      problem.r, problem.s, shape.groups, shape.turned ? "" : "conjugate ", shape.side, shape.side,
                      fused ? "" : " as real matrices"),
          4 * filter_elements()};
}

namespace {

// Of the taps the part that the window at a corner of the target holds, which has the fewest; to the filter all.
double least_taps(const Conv2dProblem& problem) {
  const auto along = [&](std::int64_t taps, std::int64_t before, std::int64_t behind) {
    const std::int64_t left = problem.pass == Pass::forward         ? taps - std::max(before, behind)
                              : problem.pass == Pass::backward_data ? std::min(before, behind) + 1
                                                                    : taps;
    return real(std::clamp<std::int64_t>(left, 0, taps)) / real(taps);
  };
  return along(problem.r, problem.pad_top, problem.pad_bottom) * along(problem.s, problem.pad_left, problem.pad_right);
}

}  // namespace

// A tile's error reaches its corners as it is (README.md): of numbers of one sign, in units in the last place, half of
// what a corner's few terms are fewer than a whole window's. That of a chain grows like the root of its length.
double FftGpuBlocks::counted(const Conv2dProblem& problem) const {
  const double of_tile = 0.45 / least_taps(problem),
               of_chain = std::sqrt(real(shape.source) * real(problem.r * problem.s));
  return of_tile > of_chain ? 4 : 1;
}

// Fitted to an H200 (README.md). Transforms take as long as so many bytes for each element of a tile that is read, and
// of one that is written.
double FftGpuBlocks::cost(const Conv2dProblem& problem, const devices::Device& device) const {
  struct OfTiles {
    double read, written, waits;
  };
  const OfTiles of = shape.side == 16   ? OfTiles{9, 4, 2.5}
                     : shape.side == 32 ? OfTiles{6.6, 5.9, 4}
                     : shape.side == 64 ? OfTiles{16, 10, 7}
                                        : OfTiles{220, 110, 30};
  // So much more than it takes, as the predictions of others are.
  constexpr double caution = 1.15;
  constexpr double of_cpu_element = 900;  // PoCL, a guess
  const bool is_gpu = device.info().is_gpu;
  const double tiles = real(shape.tiles), groups = real(shape.groups), source = real(shape.source) * groups,
               target = real(shape.target) * groups, filters = real(shape.source) * target,
               elements = real(shape.side * shape.side), kept = prepared ? 0 : 1;
  const double read = source * tiles + (shape.of_filter ? target * tiles : filters * kept),
               written = shape.of_filter ? filters : target * tiles;
  double launches = (fused ? 1 : 0) + kept, multiplied = 0;
  if (!fused) {
    const auto add = [&](const FftGpuBlock& block, double times) {
      launches += 2 * times, multiplied += times * products.at(block.product()).cost.multiply_adds;
    };
    add(block(0), 1);
    if (blocks() > 1) add(block(1), real(blocks() - 2)), add(block(blocks() - 1), 1);
  }
  const double kept_output = problem.accumulate ? 4 * target * tiles * real(shape.tile_h * shape.tile_w) : 0;
  const double transforms =
      is_gpu ? byte_cost(device) * (of.read * read + of.written * written) : of_cpu_element * (read + written);
  // Products of few channels take as long as what they read and write.
  const double of_products = fused ? 0 : std::max(multiplied, byte_cost(device) * bytes_of_tile() * tiles);
  return caution * (of_products + transforms * elements + byte_cost(device) * (least_bytes(problem) + kept_output)) +
         launch_cost(device) * (launches + (is_gpu ? of.waits : 0));
}

}  // namespace omniconv::operations
