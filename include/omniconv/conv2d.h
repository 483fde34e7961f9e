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
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

enum class Pass : std::uint8_t { forward, backward_data, backward_filter };

// x is n,c,h,w; the filter is k,c/groups,r,s; y is n,k,P,Q.
struct Conv2dProblem {
  Pass pass = Pass::forward;
  DataType type = DataType::f32;
  Layout layout = Layout::nchw;
  bool flip = false, bias = false, relu = false, accumulate = false;
  std::int64_t n = 0, c = 0, h = 0, w = 0, k = 0, r = 0, s = 0;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;
  std::string name;  // no part of equality

  bool operator==(const Conv2dProblem& other) const;
};
const operations::Operation& operation_of(const Conv2dProblem*);

// Extents of the output: rows P and columns Q.
std::int64_t P(const Conv2dProblem& problem);
std::int64_t Q(const Conv2dProblem& problem);

// Packed arrays in the problem's layout. The pass says which is written: y forward, x backward_data, w backward_filter;
// it must not overlap the others. `bias` has k elements of the problem's type, where the problem has a bias.
struct Conv2dRun {
  Operand x = {}, w = {}, y = {}, bias = {};
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class Conv2dPlan {
 public:
  Conv2dPlan(const Context& context, const Conv2dProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const Conv2dProblem& problem() const { return *plan_.problem().get_if<Conv2dProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const Conv2dRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const Conv2dRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

// Elements of the three arrays.
struct Conv2dElements {
  std::int64_t x = 0, w = 0, y = 0;
};
Conv2dElements elements_of(const Conv2dProblem& problem);

}  // namespace omniconv
