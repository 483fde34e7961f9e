#include "operations/conv2d/fft/blocking.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/checked.h"
#include "operations/conv2d/fft/transforms.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t most_parts = 8;
// Spectra of a block's inputs, and sums of a block: the last cache holds both.
constexpr std::int64_t input_bytes = std::int64_t{4} << 20, sum_bytes = std::int64_t{4} << 20;
// Spectra of filters that one block alone reads: the second caches hold them from their transforms to their products.
constexpr std::int64_t filter_bytes = std::int64_t{4} << 20;

// Bins whose distance is a power of two would meet in the same sets of caches.
std::int64_t apart(std::int64_t points, std::int64_t point) {
  return (points + 1 - points % 2) * point;
}

}  // namespace

std::span<const Tunable> fft_tunables() {
  static const std::array<Tunable, 1> all = {{{"tile", {fft_sides.begin(), fft_sides.end()}}}};
  return all;
}

bool fft_sizes_are_safe(const Conv2dProblem& problem, std::int64_t side) {
  const FftShape shape(problem, side);
  constexpr double most = 0x1p58, most_threads = 0x1p12;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double lanes = real(fft_most_lanes), bins = real(shape.bins) * 16, channels = real(shape.groups) * lanes,
               source = real(shape.source) + lanes, target = real(shape.target) + lanes;
  return bins * channels * source * target < most && bins * channels * (source + target) * real(shape.tiles) < most &&
         bins * lanes * most_threads < most;
}

FftBlocking::FftBlocking(const Conv2dProblem& problem, std::int64_t side, std::int64_t of_threads,
                         std::int64_t workspace_limit, bool prepared_filters)
    : shape(problem, side),
      real(problem.type == DataType::f64 ? DataType::f64 : DataType::f32),
      threads(of_threads),
      prepared(prepared_filters) {
  if (real == DataType::f64) {
    const auto transforms = fft_transforms_f64(side);
    lanes = transforms.lanes, scratch = transforms.scratch_elements;
  } else {
    const auto transforms = fft_transforms_f32(side);
    lanes = transforms.lanes, scratch = transforms.scratch_elements;
  }
  point = 2 * lanes;
  const bool depthwise = shape.is_depthwise();
  // The fuller vectors are lanes.
  const auto padded = [&](std::int64_t channels) {
    return round_up(channels, lanes) * std::max(shape.source, shape.target) / channels;
  };
  swapped = shape.of_filter && !depthwise && padded(shape.target) < padded(shape.source);
  source_channels = depthwise ? shape.groups : swapped ? shape.target : shape.source;
  target_channels = depthwise ? shape.groups : swapped ? shape.source : shape.target;
  source_panels = divide_up(source_channels, lanes);
  target_panels = divide_up(target_channels, lanes);
  panels = depthwise ? target_panels : shape.groups * target_panels;
  // The lanes that leave fewer empty. Of the filter's gradient they are tiles of few depthwise channels alone: sums of
  // all lanes are kept then.
  const std::int64_t of_channels = source_panels * lanes * (depthwise ? 1 : shape.groups) * shape.tiles,
                     of_tiles = round_up(shape.tiles, lanes) * shape.source * shape.groups;
  const bool may_be_tiles = problem.layout == Layout::nchw && (!shape.of_filter || (depthwise && shape.groups < lanes));
  input_lanes = may_be_tiles && of_tiles <= of_channels ? FftLanes::tiles : FftLanes::channels;
  // No number of threads is in the parts, since results follow from them.
  const bool has_parts = shape.of_filter && input_lanes == FftLanes::tiles;
  parts = has_parts ? std::clamp<std::int64_t>(most_parts / shape.groups, 1, divide_up(shape.tiles, lanes)) : 1;

  const std::int64_t size = size_of(real), step = input_lanes == FftLanes::tiles ? lanes : 1;
  const std::int64_t tile_bytes =
      shape.bins * 2 * size *
      (input_lanes == FftLanes::tiles ? shape.source * shape.groups : source_panels * shape.groups * lanes);
  block_tiles = std::max(input_bytes / tile_bytes / step, std::int64_t{1}) * step;
  block_tiles = std::min(block_tiles, shape.tiles);
  block_tiles = std::min(round_up(divide_up(shape.tiles, blocks()), step), shape.tiles);
  keeps_filters = !shape.of_filter && (prepared || blocks() > 1);
  set_block_panels();
  if (workspace_limit < 0) return;

  const auto passes_limit = [&] { return workspace_bytes() > workspace_limit; };
  if (passes_limit() && !prepared) keeps_filters = false;
  while (passes_limit() && block_panels > 1) block_panels = divide_up(block_panels, 2);
  while (passes_limit() && block_tiles > step) block_tiles = std::max(round_up(block_tiles / 2, step), step);
}

void FftBlocking::set_block_panels() {
  block_panels = 1;
  const std::int64_t bin_bytes = shape.bins * size_of(real);
  std::int64_t most = sum_bytes / (bin_bytes * sum_bin());
  if (!keeps_filters) most = std::min(most, filter_bytes / (bin_bytes * filter_bin()));
  most = std::max(most, std::int64_t{1});
  // Of the filter's gradient all, since tiles are transformed for each block again.
  block_panels = shape.is_depthwise() || shape.of_filter ? panels : std::min(most, panels);
}

std::int64_t FftBlocking::tile_panels() const {
  return divide_up(block_tiles, lanes);
}
std::int64_t FftBlocking::blocks() const {
  return divide_up(shape.tiles, block_tiles);
}
std::int64_t FftBlocking::panel_blocks() const {
  return divide_up(panels, block_panels);
}
std::int64_t FftBlocking::input_bin() const {
  if (input_lanes == FftLanes::tiles) return apart(tile_panels() * shape.source * shape.groups, point);
  return apart(block_tiles * source_panels * shape.groups, point);
}
std::int64_t FftBlocking::filter_bin() const {
  return apart((keeps_filters ? panels : block_panels) * (shape.of_filter ? block_tiles : shape.source), point);
}
std::int64_t FftBlocking::sum_bin() const {
  if (shape.of_filter) return apart(block_panels * lanes * source_panels, point);
  return apart(block_panels * (input_lanes == FftLanes::tiles ? lanes * tile_panels() : block_tiles), point);
}
std::int64_t FftBlocking::workspace_bytes() const {
  const std::int64_t filters = prepared || (shape.of_filter && shape.is_depthwise()) ? 0 : filter_bin(),
                     bins = shape.is_depthwise() ? filters : input_bin() + filters + sum_bin();
  // Of a depthwise filter's gradient three tiles: of x, of dy and of their sums, which are each part's, or a thread's.
  const std::int64_t tiles = !shape.of_filter || !shape.is_depthwise() ? threads
                             : input_lanes == FftLanes::tiles          ? 2 * threads + shape.groups * parts
                                                                       : 3 * threads;
  return checked_multiply(
      size_of(real), checked_add(checked_multiply(tiles, scratch, "the scratch"), shape.bins * bins, "the spectra"),
      "the workspace");
}

PreparedFormat FftBlocking::format(const Conv2dProblem& problem) const {
  return {fmt::format("w of {}{} k{}c{}r{}s{}, {} groups, {}, in {} panels of {} {}, spectra of {}x{}",
                      word_of(problem.layout), problem.pass == Pass::forward ? "" : " bwd_data", problem.k, problem.c,
                      problem.r, problem.s, problem.groups, shape.turned ? "as they are" : "conjugate", panels, lanes,
                      name(real), shape.side, shape.side),
          checked_multiply(size_of(real), shape.bins * filter_bin(), "the prepared filters")};
}

std::int64_t FftBlocking::targets_of(std::int64_t panel) const {
  return std::min(lanes, target_channels - panel % target_panels * lanes);
}
std::int64_t FftBlocking::sources_of(std::int64_t panel) const {
  return std::min(lanes, source_channels - panel % source_panels * lanes);
}
std::int64_t FftBlocking::first_target(std::int64_t panel) const {
  return panel / target_panels * target_channels + panel % target_panels * lanes;
}
std::int64_t FftBlocking::first_source(std::int64_t panel) const {
  return panel / source_panels * source_channels + panel % source_panels * lanes;
}

}  // namespace omniconv::operations
