// gemm: c[m, n] = a[m, k] * b[k, n], row-major, one after the other for each matrix of a batch. Problem -> plan -> run,
// on the caller's memory. docs/arithmetic.md says how exact the products are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "omniconv/context.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// An array in a buffer, from a byte on that is a multiple of its elements' size.
struct Operand {
  Buffer buffer = {};
  std::int64_t offset_bytes = 0;
};

// Packed: a is batch x m x k (k x m where it is transposed), b batch x k x n (n x k), c batch x m x n. c must not
// overlap a and b.
struct GemmRun {
  Operand a = {}, b = {}, c = {};
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

namespace solvers {
class GemmPlanBody;
}

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class GemmPlan {
 public:
  GemmPlan(const Context& context, const GemmProblem& problem, const SolverOptions& options = {});

  const GemmProblem& problem() const;
  const std::string& solver() const;
  std::int64_t workspace_bytes() const;
  double compile_seconds() const;  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const GemmRun& run) const;

 private:
  std::shared_ptr<const solvers::GemmPlanBody> body_;
};

// The applicable ones first, in the order of choice: the first is what `auto` runs.
std::vector<Candidate> explain(const Context& context, const GemmProblem& problem, const SolverOptions& options = {});

}  // namespace omniconv
