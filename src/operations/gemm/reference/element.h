// The reference of gemm: sums in double precision, in a loop that reads like the formula and is never optimised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/gemm.h"
#include "operations/reference.h"

namespace omniconv::reference {

// Of stored elements, row-major, with lda and ldb elements from one stored row to the next.
DoubleSum gemm_element(const GemmProblem& problem, const std::byte* a, std::int64_t lda, const std::byte* b,
                       std::int64_t ldb, std::int64_t i, std::int64_t j);

}  // namespace omniconv::reference
