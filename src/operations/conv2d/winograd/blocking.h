// How a run is cut on the CPU. Tiles of outputs are taken in blocks; their inputs, transformed, are panels of one side
// of products, the filters those of the other. Under nchw the tiles are columns of the products and the filters rows,
// under nhwc the other way around, so that what lies side by side in the images is a vector. If a vector has lanes for
// all tiles, the filters are columns under nchw, too, unless they come prepared: one vector of columns waits for loads.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "operations/conv2d/winograd/winograd.h"
#include "vector/matrix/gemm_tiles.h"
#include "vector/matrix/panel_cut.h"

namespace omniconv::operations {

// Panels of lines for every product of a tile and a filter: panel p of product e begins (p * products + e) * pitch
// elements on, and holds step after step.
struct WinogradSide {
  bool is_columns;
  std::int64_t lanes, most;    // of a vector; lines of a panel
  std::int64_t widest, pitch;  // elements of a step of the widest panel

  kernels::PanelCut cut(std::int64_t lines) const {
    return is_columns ? kernels::PanelCut::full(lines, most) : kernels::PanelCut::even(lines, most);
  }
  // Elements of a step of a panel of so many lines.
  std::int64_t width(std::int64_t lines) const { return is_columns ? (lines + lanes - 1) / lanes * lanes : lines; }
};

class WinogradBlocking {
 public:
  // What a plan takes under a workspace limit (negative: none), or the least that will do. An empty tuning leaves the
  // block's tiles to the caches.
  WinogradBlocking(const Conv2dProblem& problem, WinogradForm form, const Tuning& tuning, std::int64_t workspace_limit,
                   bool prepared_filters, int threads);

  WinogradForm form;
  WinogradShape shape;
  DataType real;  // f32 or f64
  kernels::RegisterTile tile;
  WinogradSide tiles, filters;
  std::int64_t tile_limit, step_limit;  // of a block's tiles and of steps, as the tuning says them
  std::int64_t steps;                   // source channels that a product's tile adds up in registers
  std::int64_t block_tiles;             // of whole panels
  std::int64_t block_filters;    // panels of filters that a block's tiles are multiplied with before they are combined
  std::int64_t filter_panels;    // of a group
  bool prepared, keeps_filters;  // they come transformed; or are, all of a group, before its first block
  // Panels that an item of work takes from taps to outputs; 0: all threads transform, then multiply, then combine.
  std::int64_t item_filters = 0;
  // Prepared filters are shared out in so many ranges, each from a block's inputs, which it transforms for itself, to
  // outputs: threads then hand each other nothing. 0: they are not.
  std::int64_t ranges = 0;

  bool has_few_tiles() const;             // which items suit
  std::int64_t tile_elements() const;     // of a block's transformed inputs
  std::int64_t filter_elements() const;   // of those filters that are kept at a time
  std::int64_t product_elements() const;  // of a block's products with block_filters, or an item's
  std::int64_t item_pitch() const;        // of a panel's steps
  int slots() const { return item_filters > 0 ? threads_ : 1; }  // that have filters and products of their own
  int tile_slots() const { return ranges > 0 ? threads_ : 1; }   // and transformed inputs
  std::int64_t workspace_bytes() const;
  std::int64_t prepared_elements() const { return filter_panels * form.products() * filters.pitch; }  // of a group
  PreparedFormat format(const Conv2dProblem& problem) const;
  Tuning tuning() const;
  double chain() const;  // L of the bound

 private:
  void set_block_tiles(std::int64_t tiles_at_most);
  void set_block_filters();
  void set_item_filters();
  void set_ranges();

  int threads_;
};

std::span<const Tunable> winograd_tunables();

}  // namespace omniconv::operations
