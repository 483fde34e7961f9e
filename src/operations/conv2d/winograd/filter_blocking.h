// How the gradient of filters is cut on the CPU: strips of tiles of dy along a row, chunks of strips whose products a
// register tile adds up, bands of chunks that are transformed at a time, and units of the sums. Channels of x are the
// columns of the products, filters the rows, tiles the steps.
#pragma once

#include <cstdint>

#include "operations/conv2d/winograd/winograd.h"
#include "vector/matrix/gemm_tiles.h"
#include "vector/matrix/panel_cut.h"

namespace omniconv::operations {

// Strips [first, first + count) of all.
struct StripRange {
  std::int64_t first, count;
};

class WinogradFilterBlocking {
 public:
  // With what a plan takes under a workspace limit (negative: none), or the least that will do. An empty tuning leaves
  // bands and chunks to the caches.
  WinogradFilterBlocking(const Conv2dProblem& problem, WinogradForm form, const Tuning& tuning, int threads,
                         std::int64_t workspace_limit);

  WinogradForm form;
  Conv2dShape shape;
  DataType real;  // f32 or f64
  int threads;
  kernels::RegisterTile tile;
  kernels::PanelCut x_cut, y_cut;  // of a group's channels of x, and of its filters
  std::int64_t x_width, y_width;   // elements of a step, in the widest panel
  std::int64_t tile_rows, tile_columns;
  std::int64_t strip_tiles;              // of a row of tiles, the last of which may have fewer
  std::int64_t step_limit, tile_limit;   // of a chunk's tiles and of a band's, as the tuning says them
  std::int64_t chunk_strips;             // several are whole rows of tiles
  std::int64_t band_chunks;              // these change no bit
  std::int64_t unit_rows, unit_columns;  // panels of filters, and of channels, whose sums an item adds up
  std::int64_t point_parts;              // items that share a unit's points, where there are few units

  std::int64_t row_strips() const;  // of a row of tiles
  std::int64_t strips() const { return shape.n * tile_rows * row_strips(); }
  std::int64_t tiles_of(std::int64_t strip) const;
  std::int64_t chunks() const;
  std::int64_t bands() const;
  StripRange band(std::int64_t i) const;
  // Steps of panels that hold so many strips.
  std::int64_t steps_of(const StripRange& range) const;

  std::int64_t x_units() const;  // of a group
  std::int64_t y_units() const;
  std::int64_t units() const { return shape.groups * x_units() * y_units(); }
  bool keeps_sums() const { return bands() > 1 || point_parts > 1; }

  // Elements of a panel of one point, and of a unit's sums: of each panel of channels, filter after filter, all points.
  std::int64_t x_panel() const;
  std::int64_t y_panel() const;
  std::int64_t unit_sums() const;
  // Elements of the workspace, one array after the other.
  std::int64_t x_elements() const;
  std::int64_t y_elements() const;
  std::int64_t line_elements() const;  // of a thread: pixels of a row of tiles, before they are transformed
  std::int64_t sum_elements() const { return (keeps_sums() ? units() : threads) * unit_sums(); }
  std::int64_t workspace_bytes() const;
  Tuning tuning() const;
  double chain() const;  // L of the bound

 private:
  void set_chunks();
  void set_band(std::int64_t tiles);
  void set_units();
};

}  // namespace omniconv::operations
