// What the tests of gemm and conv2d share.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "omniconv/error.h"
#include "checking/verify.h"

namespace omniconv {

// Every solver of the device that serves the problem gives exact results of integers, and stays within its bound.
// Returns how many did.
template <typename Problem>
int expect_exact_and_bounded(const Context& context, const Problem& problem, const MatrixVerifyOptions& options) {
  const std::unique_ptr<MatrixWork> work = make_work(problem);
  int served = 0;
  for (const VerifyResult& result : verify(context, *work, options)) {
    EXPECT_NE(result.status, Status::failed)
        << work->text() << " on " << context.device().id << ": " << result.solver << ": " << result.reason;
    served += result.status == Status::ok;
  }
  EXPECT_GE(served, 1) << work->text();
  return served;
}

// The variants of a forward problem that its text stands for in lists: each pass, without bias and relu backwards.
inline Conv2dProblem with_pass(Conv2dProblem problem, Pass pass) {
  problem.pass = pass;
  if (pass != Pass::forward) problem.bias = problem.relu = false;
  return problem;
}

}  // namespace omniconv
