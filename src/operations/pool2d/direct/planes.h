// Pooling on the CPU: what a problem's arrays are to the vector code, and what that makes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/pool2d/shape.h"

namespace omniconv::kernels {

// Planes of rows of pixels. nchw has a plane for each channel, whose pixels are one element; nhwc has one for each
// image, whose pixels are `depth` elements that follow each other.
struct PoolPlanes {
  explicit PoolPlanes(const Pool2dProblem& problem);

  // Parts of the written array that are made on their own, in its order, and the elements of all but the last.
  // Of depth 1, and one window, which is all of it: one row then.
  bool is_global() const;
  std::int64_t units() const;
  std::int64_t unit_elements() const;

  PoolAxis rows, columns;
  std::int64_t planes, depth;
  // Backward: a column with padding in front is number `position` * stride + phase; those of the image are in
  // `positions` from the first on.
  std::int64_t first_position, positions;
  Pooling pooling;
  DataType type;
  bool backward;
};

struct PoolArrays {
  std::byte *x, *y;  // backward dx, which is written, and dy
  std::int32_t* indices;
  std::int64_t before = 0;  // elements of the written arrays before those that their pointers point to
};

// Units [first, end).
void make_pool_units(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end);

// Copies past the caches, which spares reading what is overwritten. Another thread may read it after
// pool_stream_done().
void pool_stream(std::byte* to, const std::byte* from, std::int64_t bytes);
void pool_stream_done();

}  // namespace omniconv::kernels
