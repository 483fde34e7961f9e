#include "operations/conv2d/winograd/gpu_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

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
constexpr std::array<std::int64_t, 7> tile_limits = {0, 65536, 16384, 4096, 1024, 256, 64};
constexpr std::int64_t least_tiles = 32;
constexpr std::int64_t alignment = 256;  // of the workspace's arrays

std::int64_t aligned_bytes(std::int64_t elements) {
  return round_up(4 * elements, alignment);
}

}  // namespace

std::span<const Tunable> winograd_gpu_tunables() {
  static const std::array<Tunable, 2> all = {{{"tile", {4, 2}}, {"tiles", {tile_limits.begin(), tile_limits.end()}}}};
  return all;
}

WinogradGpuBlocks::WinogradGpuBlocks(const Conv2dProblem& problem, WinogradForm of_form, bool prepared_filters)
    : form(of_form),
      shape(problem, of_form),
      groups(problem.groups),
      nhwc(problem.layout == Layout::nhwc),
      of_filter(problem.pass == Pass::backward_filter),
      prepared(prepared_filters),
      tile_limit(0),
      block_tiles(shape.tiles) {}

double WinogradGpuBlocks::bytes_of_tile() const {
  return 4.0 * static_cast<double>(form.products()) * static_cast<double>(groups) *
         static_cast<double>(shape.source + shape.target);
}

void WinogradGpuBlocks::set_block_tiles(std::int64_t most) {
  const std::int64_t even = divide_up(shape.tiles, divide_up(shape.tiles, most));
  block_tiles = std::min(round_up(even, 4), shape.tiles);
}

std::int64_t WinogradGpuBlocks::blocks() const {
  return divide_up(shape.tiles, block_tiles);
}
// Under nchw tiles are columns: whole vectors of them.
WinogradGpuBlock WinogradGpuBlocks::block(std::int64_t i) const {
  const std::int64_t first = i * block_tiles, count = std::min(block_tiles, shape.tiles - first);
  return {first, count, nhwc ? count : round_up(count, 4), of_filter && i > 0};
}
std::int64_t WinogradGpuBlocks::width() const {
  return block(0).width;
}

std::int64_t WinogradGpuBlocks::targets_at() const {
  return aligned_bytes(input_elements(width()));
}
std::int64_t WinogradGpuBlocks::filters_at() const {
  return targets_at() + aligned_bytes(target_elements(width()));
}
std::int64_t WinogradGpuBlocks::rest_at() const {
  return filters_at() + (prepared ? 0 : aligned_bytes(filter_elements()));
}
std::int64_t WinogradGpuBlocks::workspace_bytes() const {
  std::int64_t most = 0;
  for (const auto& [product, offer] : products) most = std::max(most, offer.workspace_bytes);
  return rest_at() + most;
}

GemmTask WinogradGpuBlocks::product(const WinogradGpuBlock& block) const {
  GemmProblem product;
  product.batch = matrices();
  if (of_filter) {
    product.m = shape.target, product.n = shape.source, product.k = block.width;
    product.transpose_a = nhwc, product.transpose_b = !nhwc;
  } else {
    product.m = nhwc ? block.width : shape.target, product.n = nhwc ? shape.target : block.width;
    product.k = shape.source;
    product.transpose_a = !nhwc;
  }
  GemmTask task = task_for(product);
  task.accumulate = block.adds;
  return task;
}

double WinogradGpuBlocks::chain() const {
  double longest = 0;
  for (const auto& [of, offer] : products) longest = std::max(longest, offer.bound.chain);
  return longest + (of_filter ? static_cast<double>(blocks() - 1) : 0);
}

std::variant<WinogradGpuBlocks, std::string> WinogradGpuBlocks::cut(const Conv2dProblem& problem, WinogradForm form,
                                                                    const DevicePointer& device,
                                                                    std::int64_t tile_limit,
                                                                    std::int64_t workspace_limit,
                                                                    bool prepared_filters) {
  WinogradGpuBlocks all(problem, form, prepared_filters);
  all.tile_limit = tile_limit;
  // In reals first, so that what follows stays below 2^63.
  const auto most_bytes = static_cast<double>(device->info().max_buffer_bytes);
  const double least = all.bytes_of_tile() * static_cast<double>(std::min(all.shape.tiles, least_tiles)),
               of_filters = 4.0 * static_cast<double>(all.matrices()) * static_cast<double>(all.shape.source) *
                            static_cast<double>(all.shape.target);
  if (std::max(least, of_filters) > most_bytes / 2)
    return fmt::format("a few of its tiles, or its filters, take {:.0f} bytes of workspace, and a buffer has {:.0f}",
                       std::max(least, of_filters), most_bytes);
  const double room = std::min(block_bytes, most_bytes / 4) / all.bytes_of_tile();
  const auto fitting = std::max(static_cast<std::int64_t>(std::min(room, 1e9)), least_tiles);
  all.set_block_tiles(tile_limit > 0 ? std::min(tile_limit, fitting) : fitting);
  if (all.blocks() > most_tile_blocks)
    return fmt::format("its {} tiles would be cut into {} blocks, and {} are the most: take fewer images at a time",
                       all.shape.tiles, all.blocks(), most_tile_blocks);
  if (std::string reason = choose_block_products(all, device, all.of_filter, least_tiles, workspace_limit);
      !reason.empty())
    return reason;
  return all;
}

PreparedFormat WinogradGpuBlocks::format(const Conv2dProblem& problem) const {
  return {fmt::format("w of {}{} k{}c{}, {} groups, turned {}, by source and target channel, transformed for "
                      "F({}x{}, {}x{})",
                      word_of(problem.layout), problem.pass == Pass::forward ? "" : " bwd_data", problem.k, problem.c,
                      groups, shape.turned, form.outputs, form.outputs, form.taps, form.taps),
          4 * filter_elements()};
}

// A prediction (README.md): each launch moves its bytes and no more, and waits for the one before.
double WinogradGpuBlocks::cost(const Conv2dProblem& problem, const devices::Device& device) const {
  constexpr double waits = 2, worth_it = 1.1;
  // PoCL, where work items of transforms take so long for each element of a matrix.
  constexpr double of_cpu_element = 40;
  const bool is_gpu = device.info().is_gpu;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  double elements = prepared ? 0 : real(filter_elements()), launches = prepared ? 0 : 1, cost = 0;
  const auto add = [&](const WinogradGpuBlock& block, double times) {
    elements += times * real(input_elements(block.width) + target_elements(block.width));
    launches += times * 2;
    cost += times * products.at(block.product()).cost.multiply_adds;
  };
  add(block(0), 1);
  if (blocks() > 1) add(block(1), real(blocks() - 2)), add(block(blocks() - 1), 1);
  const Conv2dElements of = elements_of(problem);
  const double stored_twice = !problem.accumulate ? 0
                                                  : real(of_filter                       ? of.w
                                                         : problem.pass == Pass::forward ? of.y
                                                                                         : of.x);
  const double bytes = 4 * (elements + stored_twice) + least_bytes(problem);
  return worth_it * (cost + byte_cost(device) * bytes + (is_gpu ? 0 : of_cpu_element * elements) +
                     launch_cost(device) * (launches + (is_gpu ? waits : 0)));
}

}  // namespace omniconv::operations
