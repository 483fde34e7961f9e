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
// The four indices of an element of an array of extents (a, b, y, x); b stands last under nhwc.
struct Indices {
  std::int64_t a, b, y, x;
};
Indices indices_of(std::int64_t index, bool nhwc, std::int64_t b, std::int64_t y, std::int64_t x);

// Of element `index` of the array that the pass writes.
DoubleSum conv2d_element(const Conv2dProblem& problem, const Conv2dShape& shape, const Conv2dData& data,
                         std::int64_t index);

}  // namespace omniconv::reference
