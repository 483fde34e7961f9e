// The CPU's vector loops for magnitudes of a pair of sums: of sums that other loops made, and of central differences of
// bytes from the stored rows on. The bits are the same on all instruction sets (docs/arithmetic.md).
#pragma once

#include <cstddef>
#include <cstdint>

namespace omniconv::kernels {

// to[e] = sqrt(fma(x[e], x[e], y[e] * y[e])) for e in [0, n); `to` may be x. `exact`: the sums are integers of at most
// largest_exact_sum, or such multiples of one power of two, so that an unfused multiply-add serves too.
inline constexpr int largest_exact_sum = 4096;  // both squares are exact in fp32, and only their sum is rounded
void magnitudes(const float* x, const float* y, std::int64_t n, bool exact, float* to);
void magnitudes(const double* x, const double* y, std::int64_t n, bool exact, double* to);

// Central differences along one axis, smoothed by (outer, middle, outer) across it, which every Sobel, Prewitt or
// Scharr pair is: gx from columns 0 and 2 of 3 x 3 pixels, gy from rows 0 and 2.
struct DifferencePair {
  struct Smoothing {
    std::int16_t outer, middle;
  } x, y;
};

// Output rows that one call serves at most, and elements that it may read and write past the end of rows.
inline constexpr int difference_rows = 4;
inline constexpr std::int64_t difference_slack = 64;

struct Differences {
  DifferencePair pair;                // no sum may pass largest_exact_sum
  const std::uint8_t* const* inputs;  // difference_rows + 2 rows of n + 2 * step + difference_slack elements
  std::int64_t n = 0, step = 0;       // elements of a result; from one column to the next
  int count = 0;                      // 1 .. difference_rows; what inputs past count + 2 rows hold does not matter
  std::int16_t* scratch = nullptr;    // difference_scratch(n, step) elements
};
// Of a row of the scratch, which has two for each output row.
inline std::int64_t difference_pitch(std::int64_t n, std::int64_t step) {
  return (n + 2 * step + 2 * difference_slack) / difference_slack * difference_slack;
}
inline std::int64_t difference_scratch(std::int64_t n, std::int64_t step) {
  return 2 * difference_rows * difference_pitch(n, step);
}

// The magnitudes: `count` rows of n + difference_slack elements.
void difference_magnitudes(const Differences& arguments, float* const* to);
// The same rounded to nearest even and saturated: `count` rows of n elements, `stride_bytes` apart.
void rounded_difference_magnitudes(const Differences& arguments, std::uint8_t* to, std::int64_t stride_bytes);

// What the rounding in that loop makes of single sums, for tests: e in [0, n).
void rounded_magnitudes(const std::int16_t* gx, const std::int16_t* gy, std::int64_t n, std::uint8_t* to);

}  // namespace omniconv::kernels
