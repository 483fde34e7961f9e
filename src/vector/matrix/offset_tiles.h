// Products of a panel of rows with rows of images: each step of the sum reads columns somewhere else.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

// sums[i][j] = sum over steps t of a[t * rows + i] * b[offsets[t] + j] (+ sums[i][j] as it was), for i < rows and
// j < columns. Whole vectors of b are read.
template <typename Real>
struct OffsetTile {
  const Real *a, *b;
  const std::int64_t* offsets;
  std::int64_t steps, rows, columns;  // at most a register_tile of so many rows
  Real* sums;
  std::int64_t ld;  // from row to row
  bool add;
};
void multiply_offsets(const OffsetTile<float>& tile);
void multiply_offsets(const OffsetTile<double>& tile);

}  // namespace omniconv::kernels
