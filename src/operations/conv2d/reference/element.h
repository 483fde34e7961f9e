// The reference of conv2d: sums in double precision, in loops that read like the formulas and are never optimised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/conv2d/shape.h"
#include "operations/reference.h"

namespace omniconv::reference {

struct Conv2dData {
  const std::byte *x = nullptr, *w = nullptr, *y = nullptr;  // the pass reads two
};
// Of element `index` of the array that the pass writes.
DoubleSum conv2d_element(const Conv2dProblem& problem, const Conv2dShape& shape, const Conv2dData& data,
                         std::int64_t index);
// Of the same element of forward passes and those to the data, of strides and dilations of 1, whose outputs are cut
// into tiles of so many along each axis: the sum over channels of the sum of |w| over the taps, times the largest |x|
// (|y|) that the element's tile reads.
double conv2d_tile_norm(const Conv2dProblem& problem, const Conv2dShape& shape, const Conv2dData& data,
                        std::int64_t tile, std::int64_t index);

}  // namespace omniconv::reference
