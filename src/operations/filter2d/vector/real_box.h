// The CPU's row kernels of box filters on floating images, in fp32 or fp64. Nothing is subtracted, so that nothing
// cancels and an infinity stays where it is.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

// Elements that real_box_windows may read and write past the ends of its rows.
inline constexpr std::int64_t real_box_slack = 64;

// row[e] *= weight for e in [0, n); then total = row where the row `starts` it, else total += row, unless it is null.
void real_box_enter(float* row, float weight, float* total, bool starts, std::int64_t n);
void real_box_enter(double* row, double weight, double* total, bool starts, std::int64_t n);

// row[e] += next[e].
void real_box_add(float* row, const float* next, std::int64_t n);
void real_box_add(double* row, const double* next, std::int64_t n);

// Windows of so many pixels are added up one by one.
inline constexpr std::int64_t real_box_short = 6;

// Additions one after the other, at most, in a window of s: two for each sum of four, and one for each part.
inline std::int64_t real_box_additions(std::int64_t s) {
  if (s <= real_box_short) return s - 1;
  std::int64_t sums = 0, parts = 0;
  for (; s > 0; s /= 4) parts += s % 4, sums += s >= 4 ? 2 : 0;
  return sums + parts - 1;
}

// Scratch for an output row of n elements: this many elements times real_box_levels(s).
inline std::int64_t real_box_pitch(std::int64_t n, std::int64_t s, std::int64_t step) {
  return n + (s - 1) * step + real_box_slack;
}
inline std::int64_t real_box_levels(std::int64_t s) {
  std::int64_t levels = 1;
  for (; s >= 4; s /= 4) ++levels;
  return levels;
}

// sums[e], e in [0, n): the sum over k in [0, s) of column sums e + k * step, where a column sum is upper + lower, or
// upper alone where `lower` is null.
template <typename Real>
struct RealBoxRow {
  const Real* upper;
  const Real* lower;
  std::int64_t s, step, n;
  Real* scratch;
  Real* sums;
};
void real_box_windows(const RealBoxRow<float>& arguments);
void real_box_windows(const RealBoxRow<double>& arguments);

}  // namespace omniconv::kernels
