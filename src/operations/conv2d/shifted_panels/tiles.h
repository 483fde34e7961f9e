// How the gradient of filters is cut for the processor's matrix unit: rows of tiles are channels of x, columns filters,
// and an instruction adds up neighbouring pixels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/checked.h"
#include "operations/conv2d/blocked/axis.h"
#include "operations/conv2d/shape.h"
#include "vector/matrix/matrix_tiles.h"
#include "vector/matrix/panel_cut.h"

namespace omniconv::operations {

// Pixels that are packed and multiplied before the next: some images, or some rows of one.
struct GradientBand {
  std::int64_t image, images, row, rows;
};

class GradientCut {
 public:
  // With what a plan takes under a workspace limit (negative: none), or the least that will do. Throws where sizes pass
  // 2^63.
  GradientCut(const Conv2dProblem& problem, std::int64_t workspace_limit);

  Conv2dShape shape;
  BlockedAxis down, along;              // of x, as outputs read it
  kernels::PanelCut channels, filters;  // of a group
  // Rows of dy and of x's copy are so many elements apart, an even number: pairs of pixels are of one row, and zeros
  // stand behind dy's.
  std::int64_t pitch;
  std::int64_t chunk_rows;              // of dy that are added to sums at a time, filled up with zeros to whole depths
  std::int64_t band_images, band_rows;  // whole chunks
  std::int64_t parts;                   // of the sums: chunk i of an image adds to part (image's chunks + i) % parts

  std::int64_t chunks() const { return divide_up(shape.p, chunk_rows); }  // of an image
  std::int64_t bands() const { return divide_up(shape.n, band_images) * divide_up(shape.p, band_rows); }
  GradientBand band(std::int64_t i) const;
  // Pixels of a chunk of so many rows, in pairs of a whole number of instructions.
  std::int64_t pairs(std::int64_t rows) const {
    const std::int64_t pixels = checked_multiply(rows, pitch, "the pixels of a chunk");
    return round_up(pixels / kernels::pair_terms, kernels::matrix_side);  // the pitch is even
  }
  // Numbers of a channel's copy of an image's rows: a plane for each phase of the strides, and what whole depths read
  // beyond the last.
  std::int64_t plane(std::int64_t rows) const { return (rows + down.reach()) * pitch; }
  std::int64_t phases() const { return static_cast<std::int64_t>(down.phases.size() * along.phases.size()); }
  std::int64_t channel(std::int64_t rows) const;
  // Pairs of a panel of filters' copy of an image's rows.
  std::int64_t panel(std::int64_t rows) const;
  std::int64_t items() const { return shape.groups * filters.panels * channels.panels; }  // of a part
  // Of an item a line of filters for each channel and tap.
  std::int64_t sum_rows() const { return channels.tallest(); }
  std::int64_t sum_columns() const { return std::min(shape.k_group, filters.height); }
  std::int64_t item_sums() const;
  // Bytes of the workspace, one array after the other.
  std::int64_t x_bytes() const;
  std::int64_t y_bytes() const;
  std::int64_t workspace_bytes() const;
  // Where a tap begins in a channel's copy.
  std::int64_t offset(const BlockedTap& r, const BlockedTap& s, std::int64_t rows) const {
    return (r.phase * static_cast<std::int64_t>(along.phases.size()) + s.phase) * plane(rows) +
           (r.index - down.low) * pitch + s.index - along.low;
  }
  double chain() const;          // L of the bound
  double tile_products() const;  // multiply-adds at the peak that take as long as the tiles

 private:
  void set_band(std::int64_t bytes);
};

}  // namespace omniconv::operations
