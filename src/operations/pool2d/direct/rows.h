// Pooling on the CPU, rows at a time, in vectors along columns, along planes or along channels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/pool2d/shape.h"

namespace omniconv::kernels {

// An array that is read as rows are made, from one end to the other: so many of its bytes, or about, for each row.
struct PoolReading {
  const std::byte* from = nullptr;
  std::int64_t bytes = 0, bytes_of_row = 0;
};

struct PoolArrays {
  const Pool2dShape* shape;
  DataType type;
  std::byte *x, *y;  // backward dx, which is written, and dy
  std::int32_t* indices;
  PoolReading reading[2] = {};
  std::int64_t written = 0;  // elements of the written arrays before those that x, or y and indices, point to
};

// Rows [first, end) of what the pass writes.
using PoolRows = void (*)(const PoolArrays& arrays, std::int64_t first, std::int64_t end);

// How a problem's rows are made, and how many there are: rows of all planes (nhwc: of all images), or of all groups of
// planes, or planes.
struct PoolWork {
  PoolRows rows;
  std::int64_t count;
  std::int64_t row_elements;  // that follow each other in memory, as do rows; 0: a row lies in pieces
};
PoolWork pool_work(const Pool2dShape& shape, DataType type, bool backward);

// Elements of a vector, in which those of the type are widened.
std::int64_t pool_lanes(DataType type);

// Copies past the caches, which spares reading what is overwritten. Another thread may read it after stream_done().
void pool_stream(std::byte* to, const std::byte* from, std::int64_t bytes);
void pool_stream_done();

// nhwc, along channels.
void pool_channels_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);
void pool_channels_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);
// nchw, along columns, of which there are at least as many as a vector has lanes.
void pool_columns_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);
void pool_columns_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);
// nchw, along planes in groups of as many as a vector has lanes, where there are fewer columns.
void pool_planes_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);
void pool_planes_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);
// nchw, along the elements of planes that are one window.
void pool_global_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);
void pool_global_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end);

}  // namespace omniconv::kernels
