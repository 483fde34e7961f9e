// The plans of the solver, by what their products are.
#pragma once

#include <memory>

#include "operations/conv2d/fft/blocking.h"

namespace omniconv::operations {

// Forward and to the data: products of matrices at every bin.
std::shared_ptr<const PlanBody> fft_products_plan(const Conv2dProblem& problem, const DevicePointer& device,
                                                  const FftBlocking& cut);
// Groups of one channel and one filter, in all passes: products of numbers.
std::shared_ptr<const PlanBody> fft_depthwise_plan(const Conv2dProblem& problem, const DevicePointer& device,
                                                   const FftBlocking& cut);
// To the filter.
std::shared_ptr<const PlanBody> fft_filter_plan(const Conv2dProblem& problem, const DevicePointer& device,
                                                const FftBlocking& cut);

}  // namespace omniconv::operations
