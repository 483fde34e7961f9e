#pragma once

#include "operations/conv2d/fft/blocking.h"

namespace omniconv::operations {

// Of a run, in multiply-adds at the device's peak. The constants were fitted: README.md.
double fft_cost(const Conv2dProblem& problem, const FftBlocking& cut, double of_byte);

}  // namespace omniconv::operations
