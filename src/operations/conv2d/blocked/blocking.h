// How a run is cut on the CPU: panels of filters, chunks of source channels that a tile adds up in registers, and
// blocks of outputs whose sources one thread copies and multiplies.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "devices/device.h"
#include "operations/conv2d/blocked/axis.h"
#include "operations/solver.h"
#include "vector/matrix/gemm_tiles.h"
#include "vector/matrix/panel_cut.h"

namespace omniconv::operations {

// Taps of a pair of classes: where each lies in w, and what it adds to where an output begins in a plane's copy.
struct BlockedTaps {
  std::vector<std::int64_t> taps, offsets;
  std::int64_t filters_before;  // elements of a group's panels for the pairs before
  // Where vectors multiply, of the steps of a chunk of so many channels, and of one with one channel more.
  std::array<std::vector<std::int64_t>, 2> steps;
};

// Outputs [row, row + rows) and [column, column + columns) of a class of some images, and panels of filters.
struct BlockedBlock {
  std::size_t row_class;
  std::int64_t group, first_panel, panels, image, images, row, rows, column, columns;
};

// Elements [begin, end) of a row's copy hold the source's from `from` on; the others are zero.
struct BlockedRow {
  std::int64_t begin, end, from;
};

// What multiplies: vectors of numbers, or of pairs of bf16 where the processor has products of them; or its matrix
// unit, of bf16.
enum class BlockedUnit { numbers, pairs, matrix };

class BlockedCut {
 public:
  // With what a plan takes under a workspace limit (negative: none), or the least that will do.
  BlockedCut(const Conv2dProblem& problem, int threads, std::int64_t workspace_limit, bool prepared_filters,
             BlockedUnit unit = BlockedUnit::pairs);

  Conv2dShape shape;
  bool forward, prepared;
  DataType real;  // f32 or f64
  int threads;
  std::int64_t terms;           // channels of the source in an element of a copy: 2 where they are pairs of bf16
  std::int64_t depth;           // pairs that an instruction of the matrix unit adds up; 0: vectors multiply
  std::int64_t source, target;  // of a group: such elements, whole depths of them, and channels
  BlockedAxis down, along;
  kernels::RegisterTile tile;
  kernels::PanelCut filters, channels;  // panels of target channels, chunks of the source's elements
  std::int64_t panel_rows;              // of the highest panel

  // A block: some rows and columns of a class of an image, or some whole images.
  std::int64_t images, rows, columns;
  std::int64_t range_panels;  // of filters, that an item multiplies a block with
  // The copy of a channel's source: for each phase of rows and of columns a plane of rows `pitch` apart, whose zeros
  // beside one row may be those of the next.
  std::int64_t width, pitch, phase_plane, plane;
  std::int64_t sums_pitch;        // of a block's outputs of a filter, with what lies between them
  bool flattened;                 // rows of outputs follow each other in a tile, with what lies between them
  bool stores_rows;               // outputs lie as in a tile: rows alone, or one after the other with nothing between
  std::vector<BlockedTaps> taps;  // of rows' class i and columns' class j, at [i * columns' classes + j]

  const BlockedTaps& taps_of(std::size_t row_class, std::size_t column_class) const {
    return taps[row_class * along.classes.size() + column_class];
  }
  std::int64_t source_at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return forward ? shape.x_at(n, c, h, w) : shape.y_at(n, c, h, w);
  }
  std::int64_t target_at(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) const {
    return forward ? shape.y_at(n, c, h, w) : shape.x_at(n, c, h, w);
  }
  std::int64_t source_channels() const { return forward ? shape.c_group : shape.k_group; }
  // Of so many elements from one on.
  std::int64_t channels_in(std::int64_t first, std::int64_t count) const {
    return std::clamp<std::int64_t>(source_channels() - terms * first, 0, terms * count);
  }
  std::int64_t slots() const { return (rows - 1) * pitch + columns; }  // of an image's outputs, with what lies between
  // As soon as each is multiplied.
  bool finishes_panels() const { return channels.panels == 1 && (depth > 0 || !shape.nhwc); }
  std::int64_t ranges() const;
  std::int64_t blocks(const BlockedClass& of_rows) const;
  std::int64_t items() const;
  BlockedBlock block(std::int64_t item) const;
  // The outputs of a block's class of columns, where rows end with their class.
  std::int64_t columns_of(const BlockedBlock& some, const BlockedClass& of_columns) const {
    return std::clamp<std::int64_t>(of_columns.count - some.column, 0, some.columns);
  }
  // Of elements first + i * unit of a row of the source, those that are there.
  BlockedRow row_part(std::int64_t first) const;
  BlockedRow nowhere() const { return {width, width, 0}; }

  // Elements: of a group's panels of filters, from one panel to the next for each tap; of a thread.
  std::int64_t filter_elements() const;
  std::int64_t panel_pitch() const { return panel_rows * source; }  // filter_elements() checks it
  std::int64_t plane_elements() const;
  std::int64_t sum_elements() const;
  std::int64_t row_elements() const;
  std::int64_t workspace_bytes() const;
  PreparedFormat format(const Conv2dProblem& problem) const;
  double chain() const;  // L of the bound
  // Multiply-adds at the peak, of one thread, that take as long as an item: its copy, and its tiles.
  double item_products() const;
  // How many items the last thread takes, one after the other.
  std::int64_t rounds() const;

 private:
  double copy_products() const;   // of a block
  double panel_products() const;  // of its product with a panel of filters
  double tile_cycles() const;
  double matrix_cycles() const;
  std::vector<std::int64_t> tap_counts() const;
  std::int64_t whole_plane_bytes() const;  // under no limit
  void set_block(std::int64_t plane_bytes);
  void share_out(std::int64_t plane_bytes);
  std::int64_t most_range(std::int64_t plane_bytes) const;
  void set_geometry();
  void set_taps();
};

// Of what would be listed or copied without end where x is read as forward, or dy as backward to the data; nullptr if
// there is none.
const char* blocked_refusal(const Conv2dProblem& problem, bool forward);
// Of what the processor's matrix unit does not multiply, or does not as asked; nullptr if there is none.
const char* tiles_refusal(const Conv2dProblem& problem, const SolverOptions& request);
// What the unit offers for a problem, of which `cut_problem` is what is cut; a refusal of the unit's own comes before
// others.
Answer blocked_offer(const Conv2dProblem& problem, const Conv2dProblem& cut_problem, const devices::Device& device,
                     const SolverOptions& request, BlockedUnit unit, const char* refusal,
                     const std::function<std::shared_ptr<const PlanBody>(const BlockedCut&)>& make_plan);
// Multiply-adds at the peak that take as long as a run.
double blocked_cost(const Conv2dProblem& problem, const BlockedCut& cut, const devices::Device& device);

}  // namespace omniconv::operations
