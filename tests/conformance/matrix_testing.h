// What the tests of gemm and conv2d share.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "checking/verify.h"
#include "omniconv/conv2d.h"
#include "omniconv/error.h"
#include "omniconv/gemm.h"

namespace omniconv {

// Every solver of the device that serves the problem gives exact results of integers, and stays within its bound.
// Returns how many did.
inline int expect_exact_and_bounded(const Context& context, const Problem& problem,
                                    const checking::VerifyOptions& options) {
  int served = 0;
  for (const checking::VerifyResult& result : checking::verify(context, problem, options)) {
    EXPECT_NE(result.status, checking::Status::failed)
        << to_text(problem) << " on " << context.device().id << ": " << result.solver << ": " << result.reason;
    served += result.status == checking::Status::ok;
  }
  EXPECT_GE(served, 1) << to_text(problem);
  return served;
}

// The variants of a forward problem that its text stands for in lists: each pass, without bias and relu backwards.
inline Conv2dProblem with_pass(Conv2dProblem problem, Pass pass) {
  problem.pass = pass;
  if (pass != Pass::forward) problem.bias = problem.relu = false;
  return problem;
}

}  // namespace omniconv
