// Two-dimensional Fourier transforms of tiles on the CPU, a vector of tiles or of channels at a time: every lane is a
// transform of its own.
#pragma once

#include <array>
#include <cstdint>

namespace omniconv::operations {

inline constexpr std::int64_t fft_most_lanes = 16;

// The planes that the lanes read: element (i, j) of lane l's tile is from[l][(row[l] + i) * row_pitch +
// (column[l] + j) * pixel_pitch], where that lies in the plane and within the tile's first `rows` and `columns`, else
// 0.
template <typename Real>
struct FftSource {
  std::int64_t count = 0;  // of lanes; those beyond hold anything
  std::int64_t h = 0, w = 0, row_pitch = 0, pixel_pitch = 1;
  std::int64_t rows = 0, columns = 0;
  bool adjacent = false;  // lane l reads what lane 0 reads, l elements on
  std::array<const Real*, fft_most_lanes> from = {};
  std::array<std::int64_t, fft_most_lanes> row = {}, column = {};
};

// Where the lanes' results go: (i, j) of the transform back, counted from `top` and `left` round the tile's edge,
// becomes element (i, j) of lane l's rows[l] x columns[l], at to[l][i * row_pitch + j * pixel_pitch].
template <typename Real>
struct FftTarget {
  std::int64_t count = 0;
  std::int64_t row_pitch = 0, pixel_pitch = 1, top = 0, left = 0;
  bool adjacent = false;  // of lanes, as above; all have the extents of lane 0
  bool accumulate = false, relu = false;
  std::array<Real*, fft_most_lanes> to = {};
  std::array<std::int64_t, fft_most_lanes> rows = {}, columns = {};
  alignas(64) std::array<Real, fft_most_lanes> bias = {};
};

// The half spectrum of a real tile: `side` numbers for each of its side / 2 + 1 columns, in the order in which the
// transform leaves them, which is the same for all tiles. A vector of real parts is followed by one of imaginary parts.
struct FftPitches {
  std::int64_t column, bin;  // elements from a column to the next, from a bin of a column to the next
};

// Of tiles of one side, for the instruction set in use.
template <typename Real>
struct FftTransforms {
  std::int64_t side, lanes;
  FftPitches scratch;             // of a spectrum that begins where the scratch does
  std::int64_t scratch_elements;  // of each thread; at a multiple of a vector

  // Twice the spectrum, or its conjugate. `to` may be the scratch.
  void (*forward)(const FftSource<Real>& source, bool conjugate, Real* to, FftPitches pitches, Real* scratch);
  // Of a product of two such spectra. `from` may be the scratch, which is overwritten.
  void (*inverse)(const Real* from, FftPitches pitches, const FftTarget<Real>& target, Real* scratch);
};
FftTransforms<float> fft_transforms_f32(std::int64_t side);  // 16, 32, 64 or 128
FftTransforms<double> fft_transforms_f64(std::int64_t side);

// Where frequency k of a transform of so many points lies.
constexpr std::int64_t fft_place(std::int64_t k, std::int64_t points) {
  if (points == 1) return 0;
  const std::int64_t radix = points % 4 == 0 ? 4 : 2;
  return k % radix * (points / radix) + fft_place(k / radix, points / radix);
}

}  // namespace omniconv::operations
