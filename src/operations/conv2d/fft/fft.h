// Convolution by Fourier transforms of overlapping tiles: how tiles lie, and what transforms do to errors. README.md
// derives all of it.
#pragma once

#include <array>
#include <cstdint>

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shape.h"

namespace omniconv::operations {

inline constexpr std::array<std::int64_t, 4> fft_sides = {16, 32, 64, 128};

// A pass forward, or backward to the data, which is one forward with turned filters: of each group, images of `source`
// channels become images of `target` channels. Backward to the filter reads both, tiles of the target as filters.
struct FftShape {
  FftShape(const Conv2dProblem& problem, std::int64_t side);

  std::int64_t side, columns, bins;        // of a tile's half spectrum
  std::int64_t n, groups, source, target;  // channels of a group
  std::int64_t source_h, source_w, target_h, target_w;
  std::int64_t top, left;  // target (0, 0) reads source (-top, -left) and on
  std::int64_t taps_h, taps_w;
  std::int64_t tile_h, tile_w;                  // of the target
  std::int64_t tile_rows, tile_columns, tiles;  // of an image, and of all images
  bool turned;                                  // taps are read from the last to the first
  bool of_filter;                               // is backward to the filter

  bool is_depthwise() const { return source == 1 && target == 1; }
  struct Place {
    std::int64_t image, row, column;  // of a tile's first element of the target
  };
  Place place(std::int64_t tile) const {
    const std::int64_t of_image = tile_rows * tile_columns;
    return {tile / of_image, tile % of_image / tile_columns * tile_h, tile % tile_columns * tile_w};
  }
};

// The bound for tiles of this shape, in the norm
//   sum over channels of (sum of |w| over the taps) * (largest |x| that the output's tile reads),
// and backward to the filter sum over tiles of (sum of |dy| over the tile) * (largest |x| that the tile reads).
ErrorBound fft_bound(const Conv2dProblem& problem, const FftShape& shape);
// Of one axis' transform of so many points, relative to its 2-norm, in units of 2^-24 (2^-53).
double fft_roundings(std::int64_t side);

// Why no tile of any side serves the problem; empty where one does.
const char* fft_refusal(const Conv2dProblem& problem);

}  // namespace omniconv::operations
