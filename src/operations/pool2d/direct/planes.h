// Pooling on the CPU: what a problem's arrays are to the vector code, and what that makes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/pool2d/shape.h"

namespace omniconv::kernels {

// How rows are made.
enum class PoolForm {
  lines,     // whatever window, stride, padding and type
  whole,     // nchw, planes that are one window, which are one row here
  channels,  // nhwc f32, vectors of channels
  columns,   // nchw f32, vectors of columns, windows of two or three columns two apart
};

// Elements of a window of which `channels` keeps account.
constexpr std::int64_t most_pool_taps = 64;
// Of those it takes so many at once, from as many streams as a processor follows well.
constexpr std::int64_t pool_taps_at_once = 9;

// Planes of rows of pixels. nchw has a plane for each channel, whose pixels are one element; nhwc has one for each
// image, whose pixels are `depth` elements that follow each other.
struct PoolPlanes {
  explicit PoolPlanes(const Pool2dProblem& problem);

  // Rows of the written array, which are made on their own, in its order.
  std::int64_t units() const;
  // Whether what is written is whole cache lines, each at once.
  bool can_stream() const;
  std::int64_t unit_elements() const;

  PoolAxis rows, columns;
  std::int64_t planes, depth;
  // Backward: a column with padding in front is number `position` * stride + phase; those of the image are in
  // `positions` from the first on.
  std::int64_t first_position, positions;
  Pooling pooling;  // average also where it is of elements inside, as all are
  DataType type;
  bool backward;
  PoolForm form;
};

struct PoolArrays {
  std::byte *x, *y;  // backward dx, which is written, and dy
  std::int32_t* indices;
  bool streams = false;     // each vector goes past the caches, where can_stream(); arrays begin on cache lines then
  std::int64_t before = 0;  // elements of the written arrays before those that their pointers point to
};

// Units [first, end), of planes of that form.
void make_pool_lines(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end);
void make_pool_whole(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end);
void make_pool_channels(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end);
void make_pool_columns(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end);

}  // namespace omniconv::kernels
