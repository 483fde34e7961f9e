#include "operations/conv2d/fft/cost.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

// What a run does, in lanes of whole vectors.
struct Work {
  double filters = 0, tiles = 0, products = 0;  // transforms, and complex multiply-adds of each bin
  double phases = 0;
};

double real(std::int64_t value) {
  return static_cast<double>(value);
}

Work work_of(const FftBlocking& cut) {
  constexpr std::int64_t least_rows = 4;  // fewer take as long
  const FftShape& shape = cut.shape;
  const bool of_tiles = cut.input_lanes == FftLanes::tiles;
  const double lanes = real(cut.lanes), tiles = real(of_tiles ? round_up(shape.tiles, cut.lanes) : shape.tiles);
  if (shape.is_depthwise()) {
    const double transforms = tiles * (of_tiles ? real(shape.groups) : real(cut.panels) * lanes);
    if (shape.of_filter) return {.tiles = 2 * transforms, .products = transforms, .phases = 1};
    return {.filters = real(cut.panels) * lanes,
            .tiles = 2 * transforms,
            .products = transforms,
            .phases = 2 * real(cut.panel_blocks())};
  }
  const double groups = real(shape.groups), source = real(shape.source) * groups,
               of_sources = of_tiles ? source : real(cut.source_panels) * lanes * groups,
               of_targets = real(cut.panels) * lanes, rows = real(std::max(shape.target, least_rows)) * groups;
  const double blocks = real(cut.blocks()), panel_blocks = real(cut.panel_blocks());
  if (shape.of_filter)
    return {.filters = real(shape.target) * of_sources,
            .tiles = tiles * (of_sources * panel_blocks + of_targets),
            .products = tiles * rows * of_sources / groups,
            .phases = panel_blocks * (2 * blocks + 1)};
  Work work{.filters = of_targets * real(shape.source) * (cut.keeps_filters ? 1 : blocks),
            .phases = blocks * (1 + panel_blocks * (cut.keeps_filters ? 2 : 3)) + 1};
  if (of_tiles) {
    work.tiles = tiles * (source + real(shape.target) * groups);
    work.products = tiles * rows * real(shape.source);
  } else {
    work.tiles = tiles * (of_sources + of_targets);
    work.products = std::max(tiles, real(least_rows)) * of_targets * real(shape.source);
  }
  return work;
}

}  // namespace

double fft_cost(const Conv2dProblem& problem, const FftBlocking& cut, double of_byte) {
  constexpr double phase = 4e5, of_level = 1.7, of_element = 5, of_product = 4.5;
  const FftShape& shape = cut.shape;
  const Work work = work_of(cut);
  const double elements = real(shape.side * shape.side);
  const double transform = elements * (of_level * std::log2(real(shape.side)) + of_element);
  const double arithmetic = transform * (work.filters + work.tiles) + of_product * real(shape.bins) * work.products;
  return phase * work.phases + arithmetic * (cut.real == DataType::f64 ? 2 : 1) + of_byte * least_bytes(problem);
}

}  // namespace omniconv::operations
