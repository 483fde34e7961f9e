// Products of panels of images, one of them shifted: sums over pixels, for the gradient of filters.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

// sums[i][j] = sum over pixels of a[i] * b[j] (+ sums[i][j] as it was), for i < rows, j < columns. Pixels are
// `images` x `lines` x `pixels`; from one to the next, a goes on by a_pixel, a_line and a_image elements, b by
// its width (columns rounded up to vectors), b_line and b_image. In b pixels begin at a multiple of 64 bytes, or of a
// vector.
template <typename Real>
struct ShiftedPanels {
  const Real *a, *b;
  std::int64_t images, lines, pixels;
  std::int64_t a_image, a_line, a_pixel, b_image, b_line;
  std::int64_t rows, columns;  // at most a register_tile of many rows
  Real* sums;                  // as wide as b
  std::int64_t ld;             // from row to row
  bool add;
};
void multiply_shifted(const ShiftedPanels<float>& panels);
void multiply_shifted(const ShiftedPanels<double>& panels);

}  // namespace omniconv::kernels
