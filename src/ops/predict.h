// The cost model by which solvers are chosen, in seconds (docs/choosing.md).
#pragma once

#include "core/weights.h"
#include "devices/device.h"
#include "omniconv/problem.h"

namespace omniconv {

// Each input element read once and each output element written once, in bytes.
double image_bytes(const Filter2dProblem& problem);
// Output elements.
double output_elements(const Filter2dProblem& problem);

// The fewest multiply-adds an output element that the weights' forms let a filter hope for: r + s for a product of a
// column and a row, four for equal weights (running sums: two additions along each axis), else one a weight.
double least_multiply_adds(const Filter2dTask& task);

// What one run takes of a solver that spends so many `operations` on an output element, in multiply-adds: the longer of
// the arithmetic and of the memory's traffic. 0 where the peaks are unknown.
double predicted_seconds(const Filter2dProblem& problem, double operations, const devices::Device::Peaks& peaks);

}  // namespace omniconv
