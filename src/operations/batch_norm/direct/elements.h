// Vector code of batch_norm on the CPU. "Real" is float, double of f64.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/batch_norm.h"

namespace omniconv::kernels {

// `count` elements of a channel: the first `first` of them at its begin, the others in runs of `inner`, `stride`
// elements from one to the next.
struct ChannelRuns {
  std::int64_t first = 0, count = 0, inner = 0, stride = 0;
};
// Rows of elements, of `columns` channels each, most_columns at most, `stride` elements from one to the next.
constexpr std::int64_t most_columns = 1024;
struct ChannelRows {
  std::int64_t rows = 0, columns = 0, stride = 0;
};

// What elements of a channel are made of: y = (x - mean) * scale + beta, dx = scale * (g - (shift + (x - mean) *
// slope)).
struct ChannelFactors {
  double mean = 0, scale = 0, beta = 0, shift = 0, slope = 0;
};
// Those of neighbouring channels, of Real each.
struct FactorArrays {
  const std::byte *mean = nullptr, *scale = nullptr, *beta = nullptr, *shift = nullptr, *slope = nullptr;
};

// Chains of additions in Real end after so many elements in so many runs, or after so many rows, and go on in double.
constexpr std::int64_t block_elements = 512, block_runs = 32, block_rows = 32;
// So many additions depend on one another at most: each run adds a chain's last three, and what fills no vector.
constexpr std::int64_t most_additions = block_elements / 4 + 4 * block_runs + 2;

// The mean of x - pivot, and the sum of the squares of its deviations. Of columns to `columns` doubles each, with the
// pivots in Real.
struct Moments {
  double mean = 0, squares = 0;
};
Moments moments_of_runs(DataType type, const std::byte* x, const ChannelRuns& runs, double pivot);
void moments_of_rows(DataType type, const std::byte* x, const ChannelRows& rows, const std::byte* pivots, double* means,
                     double* squares);

// y, and with relu max(y, 0).
void normalise_run(DataType type, const std::byte* x, std::byte* y, std::int64_t count, const ChannelFactors& factors,
                   bool relu);
void normalise_rows(DataType type, const std::byte* x, std::byte* y, const ChannelRows& rows,
                    const FactorArrays& factors, bool relu);

// The sums of g and of g * (x - mean). g is dy; with relu 0 where y is not greater than 0.
struct GradientSums {
  double g = 0, product = 0;
};
GradientSums sums_of_runs(DataType type, const std::byte* x, const std::byte* dy, const ChannelRuns& runs,
                          const ChannelFactors& factors, bool relu);
void sums_of_rows(DataType type, const std::byte* x, const std::byte* dy, const ChannelRows& rows,
                  const FactorArrays& factors, bool relu, double* g, double* products);

void differentiate_run(DataType type, const std::byte* x, const std::byte* dy, std::byte* dx, std::int64_t count,
                       const ChannelFactors& factors, bool relu);
void differentiate_rows(DataType type, const std::byte* x, const std::byte* dy, std::byte* dx, const ChannelRows& rows,
                        const FactorArrays& factors, bool relu);

}  // namespace omniconv::kernels
