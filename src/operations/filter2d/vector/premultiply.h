// Rule 8 of docs/arithmetic.md on rows of interleaved pixels: colours times opacity before the chains, their sums
// divided by it after them. Chosen at run time for the processor's instruction set; the bits are the same on all.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

// Elements that both may read and write past the end of a row; buffers must have them.
inline constexpr std::int64_t premultiply_slack = 16;

struct Opacity {
  std::int64_t channels = 0, alpha = 0;
  double unit = 1;          // stored opacity times this is a fraction
  double weight = 1;        // sums are multiplied by it first
  double opaque_sum = 1;    // of the weights: what opacity sums to where all is opaque
  double opaque_value = 1;  // full opacity in the output
  double scale = 1, bias = 0;
};

// n stored elements, whole pixels, in place: opacity becomes a fraction, colours are multiplied by it.
void premultiply(const Opacity& opacity, std::int64_t n, float* row);
void premultiply(const Opacity& opacity, std::int64_t n, double* row);

// n sums over such elements, whole pixels, in place: the values to be rounded and stored.
void divide_by_opacity(const Opacity& opacity, std::int64_t n, float* sums);
void divide_by_opacity(const Opacity& opacity, std::int64_t n, double* sums);

}  // namespace omniconv::kernels
