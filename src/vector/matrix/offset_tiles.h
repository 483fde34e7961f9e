// Products of a panel of rows with rows of images: each step of the sum reads columns somewhere else.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

// sums[i][j] = sum over steps t of a[t * rows + i] * b[offsets[t] + j] (+ sums[i][j] as it was), for i < rows and
// j < columns, a tile after the other. Whole vectors of b are read.
template <typename Real>
struct OffsetTiles {
  const Real *a, *b;
  const std::int64_t* offsets;
  std::int64_t steps, rows, columns;  // rows: at most a register_tile's
  Real* sums;
  std::int64_t ld;  // from row to row
  bool add;
};
void multiply_offsets(const OffsetTiles<float>& tiles);
void multiply_offsets(const OffsetTiles<double>& tiles);

}  // namespace omniconv::kernels
