// The references of gemm and conv2d: sums in double precision, in loops that read like the formulas and are never
// optimised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/conv2d_shape.h"
#include "omniconv/problem.h"

namespace omniconv::reference {

// One sum, and the sum of the magnitudes of its terms, in which error bounds are stated.
struct DoubleSum {
  double value = 0, magnitude = 0;
};

// Of stored elements, row-major, with lda and ldb elements from one stored row to the next.
DoubleSum gemm_element(const GemmProblem& problem, const std::byte* a, std::int64_t lda, const std::byte* b,
                       std::int64_t ldb, std::int64_t i, std::int64_t j);

struct Conv2dData {
  const std::byte *x = nullptr, *w = nullptr, *y = nullptr;  // the pass reads two
};
// Of element `index` of the array that the pass writes.
DoubleSum conv2d_element(const Conv2dProblem& problem, const Conv2dShape& shape, const Conv2dData& data,
                         std::int64_t index);

}  // namespace omniconv::reference
