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

// sums[e], e in [0, n): the sum over k in [0, s) of column sums e + k * step, where a column sum is upper + lower, or
// upper alone where `lower` is null. At most 2 floor(log2 s) additions one after the other. `scratch` holds n + (s - 1)
// * step elements.
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
