// Winograd's filtering for the gradient of filters on the CPU.
#pragma once

#include "operations/conv2d/conv2d.h"

namespace omniconv::operations {

// Of backward to the filter, which the device's CPU runs.
Answer winograd_filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request);

}  // namespace omniconv::operations
