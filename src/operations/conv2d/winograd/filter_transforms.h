// The transforms of Winograd's filtering for the gradient of filters on the CPU, a vector of channels at a time.
#pragma once

#include <array>
#include <cstdint>

#include "operations/conv2d/winograd/winograd.h"

namespace omniconv::operations {

// Tiles that follow each other along a row, of a panel's channels: these lie side by side, pixel after pixel. Whole
// vectors are read, of which the last may go on beyond the last pixel.
template <typename Real>
struct TileStrip {
  std::array<const Real*, 6> rows;  // of pixels, each from the first tile on
  std::int64_t width;               // channels of a pixel
  std::int64_t tiles;
  Real* to;  // number e of tile t's channel i lies at [e * pitch + t * width + i]; nothing else is written
  std::int64_t pitch;
};

// Where the taps of some channels of a filter lie, channels side by side.
template <typename Real>
struct FilterPlace {
  Real* to;  // the first tap of the first channel
  std::int64_t tap_pitch;
  bool turned, accumulate;  // taps are stored from the last to the first; added to what is there
};

// Of one form, for the instruction set in use.
template <typename Real>
struct WinogradFilterTransforms {
  std::int64_t lanes;
  void (*input)(const TileStrip<Real>& strip);     // of x
  void (*gradient)(const TileStrip<Real>& strip);  // of dy
  // Of `count` channels, no more than a vector; the sum of products e for channel i lies at [e * pitch + i].
  void (*filter)(const Real* sums, std::int64_t pitch, std::int64_t count, const FilterPlace<Real>& place);
};
WinogradFilterTransforms<float> winograd_filter_transforms_f32(WinogradForm form);
WinogradFilterTransforms<double> winograd_filter_transforms_f64(WinogradForm form);

}  // namespace omniconv::operations
