// Solvers of other libraries, for comparison: the promise of operations/solver.h, kept by a library that is found at
// run time. The choice asks them for nothing unless one is named.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "operations/solver.h"

namespace omniconv::vendor {

// Of the operation of this name.
std::span<const operations::Solver* const> solvers_of(std::string_view operation);

// Of those that are found, by their names: "cuDNN", "9.10.2".
std::map<std::string, std::string> versions();

// What results of libraries that state no bound are held to: 2^-10 of the norm, the rounding of both factors to TF32.
inline operations::ErrorBound unstated_bound() {
  return {.amplification = SolverOptions().max_error, .constant = 8, .rounds_integers = true};
}

// Of each folder one, and the version of its library; empty where that is not found.
const operations::Solver& cudnn_conv2d();
const operations::Solver& cublas_gemm();
std::string cudnn_version();
std::string cublas_version();

}  // namespace omniconv::vendor
