// How a run is cut. Tiles are taken in blocks, filters in blocks of vectors of them. Spectra of both, and sums of their
// products, lie bin after bin: at a bin all tiles, channels and filters of a block, a vector of lanes each.
#pragma once

#include <cstdint>
#include <span>

#include "operations/conv2d/fft/fft.h"

namespace omniconv::operations {

// Lanes of inputs: tiles of a channel, or channels of a tile. Sums have the same lanes of tiles, or lanes of filters.
enum class FftLanes : std::uint8_t { tiles, channels };

class FftBlocking {
 public:
  // What a plan takes under a workspace limit (negative: none), or the least that will do.
  FftBlocking(const Conv2dProblem& problem, std::int64_t side, std::int64_t threads, std::int64_t workspace_limit,
              bool prepared_filters);

  FftShape shape;
  DataType real;                       // f32 or f64
  std::int64_t threads, lanes, point;  // point: elements of a vector of complex numbers
  std::int64_t scratch;                // elements of a thread
  FftLanes input_lanes;
  // To the filter: lanes of the products are filters and rows channels, not the other way around.
  bool swapped;
  // Vectors of channels of a group; of depthwise problems, whose lanes go over the groups, of all. Where `swapped`,
  // those of the source are of filters, and the other way around.
  std::int64_t source_panels, target_panels;
  std::int64_t source_channels, target_channels;  // of a group; swapped, too
  std::int64_t panels;                            // of filters, of all groups
  std::int64_t parts;  // of a depthwise filter's gradient, where lanes are tiles: each of some vectors of these
  std::int64_t block_tiles, block_panels;
  bool prepared, keeps_filters;  // filters come transformed; or are, all of them, before the first block

  std::int64_t tile_panels() const;  // vectors of tiles in a block
  std::int64_t blocks() const;
  std::int64_t panel_blocks() const;
  // Elements from a bin to the next.
  std::int64_t input_bin() const;
  std::int64_t filter_bin() const;
  std::int64_t sum_bin() const;
  std::int64_t workspace_bytes() const;
  PreparedFormat format(const Conv2dProblem& problem) const;
  // Channels in a vector of the target's, and of the source's.
  std::int64_t targets_of(std::int64_t panel) const;
  std::int64_t sources_of(std::int64_t panel) const;
  // The first of them, of all groups.
  std::int64_t first_target(std::int64_t panel) const;
  std::int64_t first_source(std::int64_t panel) const;

 private:
  void set_block_panels();
};

// Whether sizes of these spectra can be computed without checks.
bool fft_sizes_are_safe(const Conv2dProblem& problem, std::int64_t side);

std::span<const Tunable> fft_tunables();

}  // namespace omniconv::operations
