// Runs solvers of gemm and conv2d twice: on small integers, where every one must give the exact result, and on random
// data, where errors must lie within its bound. Arrays lie between guards, and outputs and workspaces are poisoned.
#pragma once

#include "ops/matrix_work.h"
#include "ops/verify.h"

namespace omniconv {

struct MatrixVerifyOptions {
  SolverOptions solver = {};  // `solver`: what auto would run; all: every candidate of the device; or an id
  bool sampled = false;       // check a random sample of outputs
  std::int64_t samples = 4096;
  std::uint64_t seed = 1;
};

// Fills with multiples of 1 in [-most, most], or (most 0) with random numbers in [-1, 1]. Large arrays
// repeat themselves after 1,048,583 elements, a prime number.
void fill_random(DataType type, int most, std::uint64_t seed, std::vector<std::byte>& data);

// Refused solvers are in the list with their reason. Throws for bad input.
std::vector<VerifyResult> verify(const Context& context, const MatrixWork& work,
                                 const MatrixVerifyOptions& options = {});

}  // namespace omniconv
