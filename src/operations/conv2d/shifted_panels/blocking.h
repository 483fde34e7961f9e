// How the gradient of filters is cut on the CPU: panels of channels, bands of pixels that are packed at a time, chunks
// of pixels that a tile adds up in registers, and items of work.
#pragma once

#include <cstdint>

#include "operations/conv2d/shape.h"
#include "vector/matrix/gemm_tiles.h"
#include "vector/matrix/panel_cut.h"

namespace omniconv::operations {

// Of one axis of x: what a panel holds for outputs that follow each other, of so many in all. A single tap reads every
// stride-th element, and no other is kept.
struct PanelAxis {
  std::int64_t step, reach, taken;  // from output to output in the panel, from its first to its last tap; in x
  std::int64_t dilation;            // from tap to tap in the panel
  PanelAxis(std::int64_t outputs, std::int64_t taps, std::int64_t stride, std::int64_t of_dilation);
  std::int64_t extent(std::int64_t outputs) const { return (outputs - 1) * step + reach + 1; }
};

// Pixels of dy: some images, of each some rows, of each some columns. Several images are whole.
struct PixelBlock {
  std::int64_t image, images, row, rows, column, columns;
};

class ShiftedBlocking {
 public:
  // With what a plan takes under a workspace limit (negative: none), or the least that will do. Throws where sizes pass
  // 2^63.
  ShiftedBlocking(const Conv2dProblem& problem, int threads, std::int64_t workspace_limit);

  Conv2dShape shape;
  DataType real;  // f32 or f64
  int threads;
  PanelAxis down, along;
  // Panels of a group's channels of x, and of its filters. Where a panel holds all channels of the group, all taps of a
  // row may be lines of one tile: `joins_taps`.
  kernels::PanelCut x_cut, y_cut;
  bool joins_taps;
  kernels::PanelCut line_cut;             // then: of the lines of a row of taps
  std::int64_t x_width, y_width;          // elements of a pixel, in the widest panel
  std::int64_t lanes;                     // of a vector
  std::int64_t band_images, band_rows;    // several images are whole
  std::int64_t chunk_images, chunk_rows;  // of a band, which is whole chunks
  std::int64_t chunk_columns;             // of a row, where a chunk is less than one
  std::int64_t item_panels;               // of x, that an item multiplies with one of dy
  std::int64_t parts;                     // of the sums: chunk i adds to part i % parts

  std::int64_t bands() const;
  PixelBlock band(std::int64_t i) const;
  std::int64_t chunks(const PixelBlock& band) const;
  PixelBlock chunk(const PixelBlock& band, std::int64_t i) const;
  std::int64_t chunks_before(const PixelBlock& band) const;
  std::int64_t all_chunks() const;

  std::int64_t item_ranges() const;                                                   // of panels of x, in a group
  std::int64_t units() const { return shape.groups * y_cut.panels * item_ranges(); }  // items of a part
  // Elements from a panel to the next, of a band.
  std::int64_t x_panel() const;
  std::int64_t y_panel() const;
  std::int64_t x_rows(std::int64_t rows) const { return down.extent(rows); }
  std::int64_t x_columns() const { return along.extent(shape.q); }
  // Sums of an item, a line of y_width for each channel and tap.
  std::int64_t item_sums() const;
  bool keeps_sums() const { return parts > 1 || bands() > 1; }  // from one band to the next, or from part to part

  // Elements of the workspace, one array after the other.
  std::int64_t x_elements() const;
  std::int64_t y_elements() const;
  std::int64_t line_elements() const;  // of a thread
  std::int64_t sum_elements() const;
  std::int64_t workspace_bytes() const;
  double chain() const;  // L of the bound

 private:
  void set_chunks();
  void set_band(std::int64_t bytes);
};

}  // namespace omniconv::operations
