// conv2d: batched convolution, forward and backward. Problem -> plan -> run, on the caller's memory.
//
//   forward          y[n, k, p, q] = sum over c, r, s of x[n, c, p*u + r*d - pad, q*u + s*d - pad] * w[k, c, r, s]
//   backward_data    x, the gradient, from y's and w
//   backward_filter  w, the gradient, from x and y's
//
// then, as the problem says: + bias[k], + what the output held (acc), and zero for what is negative (relu); bias and
// relu forward alone. docs/notation.md has the extents and layouts, docs/arithmetic.md the error bounds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "omniconv/context.h"
#include "omniconv/gemm.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// Packed arrays in the problem's layout. The pass says which is written: y forward, x backward_data, w backward_filter;
// it must not overlap the others. `bias` has k elements of the problem's type, where the problem has a bias.
struct Conv2dRun {
  Operand x = {}, w = {}, y = {}, bias = {};
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

namespace solvers {
class Conv2dPlanBody;
}

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class Conv2dPlan {
 public:
  Conv2dPlan(const Context& context, const Conv2dProblem& problem, const SolverOptions& options = {});

  const Conv2dProblem& problem() const;
  const std::string& solver() const;
  std::int64_t workspace_bytes() const;
  double compile_seconds() const;  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const Conv2dRun& run) const;

 private:
  std::shared_ptr<const solvers::Conv2dPlanBody> body_;
};

// The applicable ones first, in the order of choice: the first is what `auto` runs.
std::vector<Candidate> explain(const Context& context, const Conv2dProblem& problem, const SolverOptions& options = {});

// Elements of the three arrays.
struct Conv2dElements {
  std::int64_t x = 0, w = 0, y = 0;
};
Conv2dElements elements_of(const Conv2dProblem& problem);

}  // namespace omniconv
