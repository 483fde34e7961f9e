// Backward of the data, of conv2d/few_channels: what its offer asks.
#pragma once

#include <span>

#include "operations/conv2d/conv2d.h"

namespace omniconv::operations::few_channels {

// By tunings of the solver's names: `held` rows of the filter a slice, `columns` of a product, `blocks` of 128 pixels
// in rows of `width`, `resident` groups.
Answer data_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request,
                  std::span<const Tunable> domain);

}  // namespace omniconv::operations::few_channels
