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

}  // namespace omniconv::reference
