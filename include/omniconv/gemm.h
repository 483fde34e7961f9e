// gemm: c[m, n] = a[m, k] * b[k, n], row-major, one after the other for each matrix of a batch. Problem -> plan -> run,
// on the caller's memory. docs/arithmetic.md says how exact the products are.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// Row-major; a transposed operand is stored with its extents exchanged.
struct GemmProblem {
  DataType type = DataType::f32;
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string name;  // no part of equality

  bool operator==(const GemmProblem& other) const;
};
const operations::Operation& operation_of(const GemmProblem*);

// Packed: a is batch x m x k (k x m where it is transposed), b batch x k x n (n x k), c batch x m x n. c must not
// overlap a and b.
struct GemmRun {
  Operand a = {}, b = {}, c = {};
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class GemmPlan {
 public:
  GemmPlan(const Context& context, const GemmProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const GemmProblem& problem() const { return *plan_.problem().get_if<GemmProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const GemmRun& run) const {
    return plan_.run(queue, {{"a", run.a}, {"b", run.b}, {"c", run.c}}, run.workspace);
  }

  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const GemmRun& run) const {
    plan_.append(sequence, {{"a", run.a}, {"b", run.b}, {"c", run.c}}, run.workspace);
  }

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
