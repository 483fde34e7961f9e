// The vector loops of depthwise convolution on the CPU. A plane is the pixels of one channel (nchw: vectors hold
// neighbouring columns) or of a vector of channels (nhwc: vectors hold channels). Windows of planes are copied,
// widened, with zeros for what lies outside, so that sums need no edges.
#pragma once

#include <cstdint>
#include <span>

#include "omniconv/types.h"

namespace omniconv::kernels {

std::int64_t depthwise_lanes(DataType sums);  // f32 or f64

// A window of a stored plane, and its copy. `phases` takes columns apart: column i of the window is element i / phases
// of part i % phases of its row. Nhwc leaves them together, `channels` lanes to a column.
template <typename Real>
struct PlaneWindow {
  std::byte* stored;  // of row 0, column 0
  DataType type;
  std::int64_t rows, columns, row_pitch, column_pitch;  // of the stored plane, in elements
  std::int64_t channels;                                // of nhwc that are there, or 0
  const std::int64_t* offsets;                          // of these, where they are not neighbours; or null
  std::int64_t first_row, window_rows, first_column, window_columns;
  std::int64_t phases;
  Real* copy;
  std::int64_t copy_row, copy_phase;  // elements from row to row and part to part
  Real* line;                         // room for a row, where there are several phases
};
// Writes whole vectors: past the end of each row or part, up to one of them.
void fill_window(const PlaneWindow<float>& window);
void fill_window(const PlaneWindow<double>& window);

// Asks for the lines that store_window will write. Stores are done in their order, so that those to the copies would
// wait for lines that come from memory.
void fetch_window(const PlaneWindow<float>& window);
void fetch_window(const PlaneWindow<double>& window);

// What is done to sums before they are stored.
template <typename Real>
struct PlaneFinish {
  const Real* bias;  // one, of nhwc one for each lane; null: none
  bool accumulate, relu;
};
// The copy goes to where the window lies, as far as it is inside the plane.
void store_window(const PlaneWindow<float>& window, const PlaneFinish<float>& finish);
void store_window(const PlaneWindow<double>& window, const PlaneFinish<double>& finish);

// Taps that neighbouring rows of sums share, one after the other, meet rows of input one step apart.
inline constexpr std::int64_t most_taps = 7;

// to[i, j] (+)= sum over the offsets o and t < taps of weights[o, t] * from[o + (i + t) * row + j * column], with i the
// row of sums and j the vector. Weights are numbers, of nhwc vectors.
template <typename Real>
struct PlaneSums {
  const Real* from;
  std::int64_t from_row, from_vector;
  std::span<const std::int64_t> offsets;
  std::int64_t taps;
  const Real* weights;
  bool weights_of_lanes;
  Real* to;
  std::int64_t to_row, to_vector;
  std::int64_t rows, vectors;
  bool add;  // to what is there
};
void add_plane_taps(const PlaneSums<float>& sums);
void add_plane_taps(const PlaneSums<double>& sums);

// sums[o, t] += sum over i, j of from[o + (i + t) * row + j * column] * to[i, j], a vector each.
template <typename Real>
struct PlaneProducts {
  const Real* from;
  std::int64_t from_row, from_vector;
  std::span<const std::int64_t> offsets;
  std::int64_t taps;
  const Real* to;
  std::int64_t to_row, to_vector;
  std::int64_t rows, vectors;
  std::int64_t last_lanes;  // of a row's last vector that are there: what else `from` holds meets no output
  Real* sums;
};
void add_plane_products(const PlaneProducts<float>& products);
void add_plane_products(const PlaneProducts<double>& products);

}  // namespace omniconv::kernels
