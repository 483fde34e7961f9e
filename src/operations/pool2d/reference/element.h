// The reference of pool2d: windows one by one, sums in double precision, in loops that read like the formulas and are
// never optimised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "operations/pool2d/shape.h"
#include "operations/reference.h"

namespace omniconv::reference {

// The places of a four-dimensional array's element, whatever its layout.
struct Pool2dPlace {
  std::int64_t n, c, row, column;
};
Pool2dPlace pool2d_place(const Pool2dShape& shape, std::int64_t index, std::int64_t rows, std::int64_t columns);

// The first maximum of a window; the first NaN where there is one.
struct Pool2dMaximum {
  std::int64_t at = 0;  // elements before it in x
  std::int32_t index = 0;
};
Pool2dMaximum pool2d_maximum(const Pool2dShape& shape, DataType type, const std::byte* x, const Pool2dPlace& window);

DoubleSum pool2d_average(const Pool2dShape& shape, DataType type, const std::byte* x, const Pool2dPlace& window);

// Of dx; `indices` are null for averages.
DoubleSum pool2d_gradient(const Pool2dShape& shape, DataType type, const std::byte* dy, const std::byte* indices,
                          const Pool2dPlace& element);

}  // namespace omniconv::reference
