#include "operations/conv2d/fft/cost.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

double real(std::int64_t value) {
  return static_cast<double>(value);
}

// Of an element of a tile: the pass down the columns, and of those rows that there are the pass along them.
struct TransformCost {
  double columns, rows_in, rows_out;
};
TransformCost transform_cost(std::int64_t side) {
  if (side == 16) return {17, 15, 29};
  if (side == 32) return {19, 26, 31};
  return side == 64 ? TransformCost{19, 29, 37} : TransformCost{24, 36, 48};
}

// A run's transforms, each of a lane, and its products, each of a lane, a row and a step of all bins.
struct Work {
  double filters = 0, inputs = 0, gradients = 0, outputs = 0;
  double products = 0, sums = 0;  // of so many sums
  double spectra = 0;             // numbers that are written to the workspace and read
  double phases = 0;
};

Work depthwise_work(const FftBlocking& cut) {
  const FftShape& shape = cut.shape;
  const bool of_tiles = cut.input_lanes == FftLanes::tiles;
  const double filters = real(cut.panels * cut.lanes),
               tiles =
                   of_tiles ? real(round_up(shape.tiles, cut.lanes)) * real(shape.groups) : real(shape.tiles) * filters;
  if (shape.of_filter)
    return {.inputs = tiles,
            .gradients = tiles,
            .outputs = filters,
            .products = 2 * tiles,
            .sums = of_tiles ? real(shape.groups * cut.parts * cut.lanes) : 0,
            .phases = of_tiles ? 2.0 : 1.0};
  return {.filters = cut.prepared ? 0 : filters,
          .inputs = tiles,
          .outputs = tiles,
          .products = 2 * tiles,  // numbers come from caches for each
          .spectra = filters + (of_tiles ? 0 : tiles),
          .phases = 2 * real(cut.panel_blocks())};
}

Work work_of(const FftBlocking& cut) {
  const FftShape& shape = cut.shape;
  if (shape.is_depthwise()) return depthwise_work(cut);
  constexpr std::int64_t at_once = 4;  // rows; fewer take as long
  const bool of_tiles = cut.input_lanes == FftLanes::tiles;
  const double groups = real(shape.groups), lanes = real(cut.lanes),
               tiles = real(of_tiles ? round_up(shape.tiles, cut.lanes) : shape.tiles), blocks = real(cut.blocks()),
               panel_blocks = real(cut.panel_blocks());
  const double inputs = tiles * groups * (of_tiles ? real(cut.source_channels) : real(cut.source_panels) * lanes),
               targets = real(cut.panels) * lanes;
  Work work;
  if (shape.of_filter) {
    work.inputs = inputs * panel_blocks, work.gradients = tiles * targets;
    work.outputs = real(cut.target_channels) * groups * real(cut.source_panels) * lanes;
    work.products = real(round_up(cut.target_channels, at_once)) * inputs;
    work.sums = work.outputs * blocks;
    work.spectra = work.inputs + work.gradients + 2 * work.sums;
    work.phases = panel_blocks * (2 * blocks + 1);
    return work;
  }
  const double transformed = cut.prepared ? 0 : cut.keeps_filters ? 1 : blocks;
  work.filters = targets * real(shape.source) * transformed;
  work.inputs = inputs;
  work.outputs = tiles * (of_tiles ? real(shape.target) * groups : targets);
  work.products = real(shape.source) * (of_tiles ? tiles * groups * real(round_up(shape.target, at_once))
                                                 : real(round_up(shape.tiles, at_once)) * targets);
  work.sums = work.products / real(shape.source);
  work.spectra = targets * real(shape.source) * (transformed + blocks) + work.inputs + work.outputs;
  work.phases =
      blocks * (1 + panel_blocks * (cut.keeps_filters ? 2 : 3)) + (cut.keeps_filters && !cut.prepared ? 1 : 0);
  return work;
}

}  // namespace

double fft_cost(const Conv2dProblem& problem, const FftBlocking& cut, double of_byte) {
  constexpr double phase = 4e5, product = 7, sum = 10, spectrum = 14;
  constexpr double cached_bytes = 0x1p24;
  const FftShape& shape = cut.shape;
  const Work work = work_of(cut);
  const double bins = real(shape.bins), bin_bytes = 2 * real(size_of(cut.real));
  const auto [columns, rows_in, rows_out] = transform_cost(shape.side);
  const auto part = [&](std::int64_t rows) { return std::min(real(rows) / real(shape.side), 1.0); };
  const std::int64_t read = std::min(shape.source_h, shape.side), taps = shape.taps_h,
                     written = std::min(shape.tile_h, shape.target_h);
  const double transforms = work.filters * (columns + rows_in * part(taps)) +
                            work.inputs * (columns + rows_in * part(read)) +
                            work.gradients * (columns + rows_in * part(written)) +
                            work.outputs * (columns + rows_out * part(shape.of_filter ? taps : written));
  const double arithmetic = transforms * real(shape.side * shape.side) +
                            bins * (product * work.products + sum * work.sums + spectrum * work.spectra);
  // Spectra of filters that no cache keeps are written, and read again for each block; so are sums of the gradient.
  const double kept = shape.is_depthwise() ? 0
                      : shape.of_filter
                          ? bins * bin_bytes * work.outputs
                          : bins * bin_bytes * real((cut.keeps_filters ? cut.panels : cut.block_panels) * cut.lanes) *
                                real(shape.source);
  const double passes =
      kept > cached_bytes ? real(cut.blocks()) * (shape.of_filter ? 2 : 1) + (cut.prepared ? 0 : 1) : 0;
  return phase * work.phases + arithmetic * (cut.real == DataType::f64 ? 2 : 1) +
         of_byte * (least_bytes(problem) + kept * passes);
}

}  // namespace omniconv::operations
