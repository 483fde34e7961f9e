// The CPU's snippets for work on rows: widen stored pixels, chain taps over several output rows, convert and store.
// Chosen at run time for the processor's instruction set; the bits are the same on all (docs/arithmetic.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"

namespace omniconv::kernels {

// Output rows that one chain call serves at most: an input row that is in registers serves as many.
inline constexpr int chain_rows = 4;
// Elements that a chain may read and write past the end of its rows; buffers must have them.
inline constexpr std::int64_t chain_slack = 16;

// Stored elements [0, n) as fp32 (s32 rounded to nearest even) or fp64.
void widen(DataType type, const std::byte* from, std::int64_t n, float* to);
void widen(DataType type, const std::byte* from, std::int64_t n, double* to);

// Steps 2 (equal weights) and 6: convert(fma(scale, sum * weight, bias)), carried out in fp32 or fp64.
struct Finish {
  DataType type;  // of the output
  double scale = 1, bias = 0;
  bool times_weight = false;  // sums are of pixels alone
  double weight = 1;
  bool stream = false;  // past the caches, where rows of f32 begin on cache lines
  bool f32 = true;      // arithmetic in fp32, even where the sums are fp64 (exact integers)
};

// Stored rows that the next chain needs first: they are asked for, a line at a time, while this one works, since the
// processor's own prefetching starts anew at every row.
struct Upcoming {
  const std::byte* const* rows = nullptr;  // chain_rows rows from element 0 on, or null
  std::int64_t element_bytes = 1;
};

// The chain s <- fma(w, x, s) over taps in row-major order, for output rows j in [0, count) and elements e in [0, n):
// x = inputs[j + i][offset + e + k * step], w = weights[i * s + k].
template <typename Real>
struct Chain {
  const Real* const* inputs;  // count + r - 1 rows of offset + n + (s - 1) * step + chain_slack elements
  const Real* weights;        // r x s
  std::int64_t r = 0, s = 0, step = 0;
  std::int64_t offset = 0, n = 0;
  int count = 0;  // 1 .. chain_rows
  Upcoming upcoming = {};
  bool exact = false;  // no product or sum needs rounding, so that an unfused multiply-add serves too
};

// Leaves the sums as they are: count rows of n + chain_slack elements.
void chain(const Chain<float>& arguments, float* const* sums);
void chain(const Chain<double>& arguments, double* const* sums);
// Two chains along one row (r = 1, count = 1), by weights[0, s) into sums[0] and by weights[s, 2 s) into sums[1]: what
// is loaded serves both.
void two_chains(const Chain<float>& arguments, float* const* sums);
void two_chains(const Chain<double>& arguments, double* const* sums);
// Finishes them: count rows of n stored elements, `stride_bytes` apart. `sums` is scratch, as above.
void chain_and_finish(const Chain<float>& arguments, const Finish& finish, float* const* sums, std::byte* to,
                      std::int64_t stride_bytes);
void chain_and_finish(const Chain<double>& arguments, const Finish& finish, double* const* sums, std::byte* to,
                      std::int64_t stride_bytes);

// Finishes n sums that are there already, with chain_slack more that may be read, as n stored elements.
void finish(const Finish& finish, const float* sums, std::int64_t n, std::byte* to);
void finish(const Finish& finish, const double* sums, std::int64_t n, std::byte* to);

}  // namespace omniconv::kernels
