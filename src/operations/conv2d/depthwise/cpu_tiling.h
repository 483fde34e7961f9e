// How a depthwise convolution is cut on the CPU: tiles of a plane, whose input and sums have room in the near caches.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/conv2d/depthwise/cpu_axis.h"
#include "operations/conv2d/shape.h"

namespace omniconv::operations {

// Taps of one count, by where their input begins in the tile's copy; the weights of one offset follow each other.
struct DepthwiseOffsets {
  std::int64_t taps;
  std::int64_t first_weight;
  std::vector<std::int64_t> offsets;
};

// Elements are those of the sums. What a thread has: the copy of the input, sums (of the filter: a copy of y), a line,
// weights (of the filter: their gradient).
struct DepthwiseTiles {
  DepthwiseTiles(const Conv2dProblem& problem, std::int64_t workspace_bytes, int threads);

  bool nhwc;
  std::int64_t lanes;
  DepthwiseAxis down, along;
  std::int64_t rows, columns;  // of a tile: t of the axes
  std::int64_t vectors;        // of a row of a phase
  std::int64_t in_rows, in_columns, in_phases, in_phase, in_row;
  std::int64_t out_phase, out_row;
  std::int64_t in_elements, out_elements, line_elements, weight_elements;
  std::vector<std::int64_t> weights;                   // their order: places in a filter of r * s
  std::vector<std::vector<DepthwiseOffsets>> offsets;  // by phase down, then along

  std::int64_t tiles_down() const;
  std::int64_t tiles_along() const;
  std::int64_t thread_elements() const { return in_elements + out_elements + line_elements + weight_elements; }

 private:
  void set_tile(std::int64_t the_rows, std::int64_t the_columns);
  void find_offsets(std::int64_t s);
};

}  // namespace omniconv::operations
