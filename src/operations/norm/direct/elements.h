// Vector code of norm on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"

namespace omniconv::kernels {

// The sum of the squares of so many elements, a piece's at most, in the promised order. float, or double of f64, to
// `sum`.
void sum_squares(DataType type, const std::byte* g, std::int64_t elements, std::byte* sum);

// The sum of so many sums of pieces, float or double of f64, in the promised order.
void sum_pieces(DataType type, const std::byte* sums, std::int64_t pieces, std::byte* sum);

}  // namespace omniconv::kernels
