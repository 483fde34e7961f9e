// Products of a panel of rows with rows of images: each step of the sum reads columns somewhere else.
#pragma once

#include <cstdint>

#include "vector/matrix/bfloat_pair.h"

namespace omniconv::kernels {

// sums[i][j] = sum over steps t of a[t * rows + i] * b[offsets[t] + j] (+ sums[i][j] as it was), for i < rows and
// j < columns, a tile after the other. Whole vectors of b are read.
template <typename Element>
struct OffsetTiles {
  const Element *a, *b;
  const std::int64_t* offsets;
  std::int64_t steps, rows, columns;  // rows: at most a register_tile's
  typename SumOf<Element>::Type* sums;
  std::int64_t ld;  // from row to row
  bool add;
};
void multiply_offsets(const OffsetTiles<float>& tiles);
void multiply_offsets(const OffsetTiles<double>& tiles);
void multiply_offsets(const OffsetTiles<BfloatPair>& tiles);

}  // namespace omniconv::kernels
