// How the passes of a convolution are products of tiles: what their kernels go over, and the choice of tiles. No device
// text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shape.h"
#include "operations/gemm/tiled/tiles.h"

namespace omniconv::operations::implicit_gemm {

// Along one axis, as implicit_positions.kernel explains it.
struct PixelAxis {
  std::int64_t source = 0, out = 0, positions = 0, classes = 1, taps = 1;
  std::int64_t step = 1, apart = 1, out_step = 1, tap_step = 1;
  std::int64_t merged = 1, first = 0;  // classes that a position has beside each other; what its first tap adds
  std::int64_t filled = 1, own = 0;    // pixels that a position makes, all but that of the own class without a tap
  bool all_met = true;                 // whether every tap meets every pixel of a single class
};

// Forward, and backward of the data. There, with strides up to 8, a position makes pixels without a tap too where a
// single class has taps; and a product that `merges` makes all classes at once, as rows beside each other, with zeros
// for taps that a class does not meet.
struct PixelProduct {
  explicit PixelProduct(const Conv2dProblem& problem, bool merges = false);

  PixelAxis down, along;
  std::int64_t images, groups, taps;
  std::int64_t source_group, out_group;  // channels of a group
  std::int64_t out_rows;                 // of all merged classes
  bool nhwc, flat;

  std::int64_t positions() const { return images * down.positions * along.positions; }
  std::int64_t classes() const { return down.classes * along.classes; }
  // Of turned filters, for tiles of so many products a stage, rows and columns.
  std::int64_t panel_rows(std::int64_t tile_k) const;
  std::int64_t panel_pitch(std::int64_t tile_m, std::int64_t tile_n) const;
};

// Whether x is read as vectors of channels, backward of the filter.
bool reads_channels_at_once(const Conv2dShape& g);

// Why no product serves the problem; empty if one does.
std::string product_refusal(const Conv2dProblem& problem);

struct ProductChoice {
  GemmTile tile;
  std::int64_t parts = 1, part_k = 0;  // pixels of a part, backward of the filter
  std::int64_t groups = 0;             // of work items
  std::int64_t panel_bytes = 0, parts_bytes = 0;
  double cost = 0;  // of a run, in multiply-adds

  std::int64_t workspace_bytes() const { return panel_bytes + parts_bytes; }
};
// The cheapest, or exactly the request's tuning; or why there is none.
std::variant<ProductChoice, std::string> choose_product(const Conv2dProblem& problem, const devices::Device& device,
                                                        const SolverOptions& request);
std::span<const Tunable> product_tunables();
Tuning tuning_of(const ProductChoice& choice);

// Dependent additions of one output at most.
double product_chain(const Conv2dProblem& problem, const ProductChoice& choice);

}  // namespace omniconv::operations::implicit_gemm
