// Solvers of other libraries, for comparison: the promise of operations/solver.h, kept by a library that is found at
// run time. The choice asks them for nothing unless one is named.
#pragma once

#include <span>
#include <string_view>

#include "operations/solver.h"

namespace omniconv::vendor {

// Of the operation of this name.
std::span<const operations::Solver* const> solvers_of(std::string_view operation);

// What results of libraries that state no bound are held to: 2^-10 of the norm, the rounding of both factors to TF32.
inline operations::ErrorBound unstated_bound() {
  return {.amplification = SolverOptions().max_error, .constant = 8, .rounds_integers = true};
}

// One of each folder.
const operations::Solver& cudnn_conv2d();
const operations::Solver& cublas_gemm();

}  // namespace omniconv::vendor
