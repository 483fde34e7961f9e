// The kernel `motion`: a smear along a line.
#pragma once

#include "operations/filter2d/kernels.h"

namespace omniconv {

// A line `length` pixels long (at least 1) and one pixel wide through the middle of the kernel, `degrees` from the
// horizontal, rising to the right. A weight is the area of its pixel that the line covers, over the sum of these areas.
// The kernel is the smallest of odd sides that holds the line: of length 5 and 0 degrees it is 1 x 5 equal weights.
Kernel motion_kernel(double length, double degrees);

}  // namespace omniconv
