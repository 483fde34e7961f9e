// The plan that the CPU's solvers share: tiles of the output over the device's threads.
#pragma once

#include "operations/filter2d/filter2d.h"
#include "operations/filter2d/vector/tile_filter.h"

namespace omniconv::operations {

// chains: over the taps; rows_first: along rows, then down columns; byte_dots: chains of integers
// (vector/dot_rows.h).
enum class CpuMethod { chains, rows_first, byte_dots };

Offer cpu_offer(const Filter2dTask& task, const DevicePointer& device, CpuMethod method, double operations,
                const ErrorBound& bound);
// Rows first, by these factors in place of the weights.
Offer cpu_offer(const Filter2dTask& task, const DevicePointer& device, const kernels::Products& products,
                double operations, const ErrorBound& bound);

}  // namespace omniconv::operations
