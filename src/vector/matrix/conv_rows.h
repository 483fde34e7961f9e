// Sums of direct convolution on the CPU, a tile of outputs at a time: `channels` rows of `tile_columns` sums.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

inline constexpr std::int64_t tile_columns = 64, tile_channels = 8;

// sums[i][j] += weights[i] * x[j] for i in [0, channels) and j in [0, tile_columns), each by one fused multiply-add
// where the processor has one.
void add_scaled_row(std::int64_t channels, const float* weights, const float* x, float* sums);
void add_scaled_row(std::int64_t channels, const double* weights, const double* x, double* sums);

// sums[i][j] += x[j] * y[i][j].
void add_products(std::int64_t channels, const float* x, const float* y, float* sums);
void add_products(std::int64_t channels, const double* x, const double* y, double* sums);

}  // namespace omniconv::kernels
