// How conv2d/depthwise cuts a problem: the block of a work item, and how work items lie in a group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "devices/device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Of the input, along an axis: where what a block may meet begins, counted from where the block does, and how much it
// is.
struct DepthwiseSpan {
  std::int64_t low = 0, count = 0;
};

// The constants of depthwise_blocks.kernel and of those that follow it.
struct DepthwiseTiling {
  static constexpr std::int64_t most_items = 128;         // of a group
  static constexpr std::int64_t most_planes_items = 256;  // likewise, where planes go through local memory
  static constexpr std::int64_t adders = 8;               // work items that add an output's parts
  // What is tuned.
  std::int64_t rows = 1, columns = 1, lanes = 1, planes = 0, resident = 4, waves = 0, async = 0, alone = 0, ahead = 0;
  std::int64_t group = most_items, copied = 1, out_copied = 1;  // the vectors of planes, in elements
  std::int64_t channels = 1, inputs = 1, x_vector = 1, y_vector = 1, tap_vector = 1;
  bool paired = false, unrolls_rows = true, holds_taps = false, stages_taps = false;
  std::int64_t tap_rows = 1;                   // of the filter's gradient
  std::int64_t parts = 1, blocks_of_part = 1;  // likewise
  std::int64_t units = 1;                      // channels of all work items at a pixel
  std::int64_t row_blocks = 1, column_blocks = 1;
  std::int64_t window = 1, turn = 1;  // of strips: rows of the output, or of y, that are open at once, and of a turn
  DepthwiseSpan down, along;

  std::int64_t blocks() const { return row_blocks * column_blocks; }    // of a plane, or of an image under NHWC
  std::int64_t pixels() const { return group / lanes; }                 // work items of a group along pixels
  std::int64_t open_rows() const { return ahead > 0 ? window : rows; }  // whose sums are in registers
};

// Why the solver does not serve the problem, whatever the tiling; empty if it may.
std::string depthwise_refusal(const Conv2dProblem& problem);

// Of a problem that is served: the tiling whose model takes least, or the one asked for; a sentence where that does not
// go together.
struct DepthwiseChoice {
  DepthwiseTiling tiling;
  std::string refusal = {};
};
DepthwiseChoice depthwise_tiling(const Conv2dProblem& problem, const devices::Device& device,
                                 const SolverOptions& request);
// Of a launch of the output, or of x's gradient, for so many images.
std::int64_t depthwise_groups(const Conv2dProblem& problem, const DepthwiseTiling& tiling, std::int64_t images);
// Of the workspace, where the filter's gradient has several parts.
std::int64_t depthwise_part_bytes(const Conv2dProblem& problem);

std::span<const Tunable> depthwise_tunables();
Tuning tuning_of(const DepthwiseTiling& tiling);

// Dependent additions of one output at most.
double depthwise_chain(const Conv2dProblem& problem, const DepthwiseTiling& tiling);
// Of a run, in multiply-adds.
double depthwise_cost(const Conv2dProblem& problem, const DepthwiseTiling& tiling, const devices::Device& device);

}  // namespace omniconv::operations
