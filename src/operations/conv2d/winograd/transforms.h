// The transforms of Winograd's filtering on the CPU, a vector of tiles or of channels at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/conv2d/winograd/winograd.h"

namespace omniconv::operations {

// Neighbouring tiles of one row of tiles, in the lanes of a vector from `lane` on.
struct TileRun {
  std::int64_t lane, count;
  std::int64_t image, row, column;  // of the first tile's first output
};

// One channel of the images that tiles read, in planes.
template <typename Real>
struct SourcePlanes {
  const Real* from;  // image 0
  std::int64_t image_pitch, h, w, top, left;
  std::int64_t ahead;  // elements from here to what will be read next, which is fetched meanwhile
};

// One tile of an image whose channels lie side by side; it begins at `row` and `column`, which may lie outside.
template <typename Real>
struct SourceTile {
  const Real* from;                          // pixel (0, 0), first channel
  std::int64_t row, column, h, w, channels;  // channels of a pixel
};

// Filters of a vector of target channels for one source channel: tap t of all at taps[t * tap_pitch].
template <typename Real>
struct FilterTaps {
  const Real* taps;
  std::int64_t tap_pitch;
  bool turned;
};

// What outputs become before they are stored.
template <typename Real>
struct OutputFinish {
  const Real* bias = nullptr;  // of the first channel
  bool accumulate = false, relu = false;
};

// One channel of the images of outputs, in planes.
template <typename Real>
struct TargetPlanes {
  Real* to;  // image 0
  std::int64_t image_pitch, h, w;
};

// One tile of an image of outputs whose channels lie side by side.
template <typename Real>
struct TargetTile {
  Real* to;                    // the tile's first output, first channel
  std::int64_t rows, columns;  // outputs that there are, from it on
  std::int64_t row_pitch, channels;
};

// Of one form, for the instruction set in use. Product e of lane i lies at [e * pitch + i]. Where a `count` is of
// lanes, it is no more than a vector.
template <typename Real>
struct WinogradTransforms {
  std::int64_t lanes;
  // Of a vector of tiles, cut into `count` runs in the order of their lanes; `to` is at a multiple of a vector.
  void (*input_of_planes)(const SourcePlanes<Real>& planes, const TileRun* runs, std::int64_t count, Real* to,
                          std::int64_t pitch);
  // Of `count` channels; whole vectors are written.
  void (*input_of_tile)(const SourceTile<Real>& tile, std::int64_t count, Real* to, std::int64_t pitch);
  // Of `count` target channels, which are read as a whole vector.
  void (*filter)(const FilterTaps<Real>& filters, std::int64_t count, Real* to, std::int64_t pitch);
  void (*output_of_planes)(const Real* products, std::int64_t pitch, const TileRun* runs, std::int64_t count,
                           const OutputFinish<Real>& finish, const TargetPlanes<Real>& planes);
  // Of `count` channels.
  void (*output_of_tile)(const Real* products, std::int64_t pitch, std::int64_t count, const OutputFinish<Real>& finish,
                         const TargetTile<Real>& tile);
};
WinogradTransforms<float> winograd_transforms_f32(WinogradForm form);
WinogradTransforms<double> winograd_transforms_f64(WinogradForm form);

}  // namespace omniconv::operations
