// pool2d: the maximum or the average of each window of an image, forward and backward. Problem -> plan -> run, on the
// caller's memory.
//
//   maximum   y[n, c, p, q] = x at the first maximum of the window, which `indices` names by r * S + s
//             dx[n, c, h, w] = sum of dy over the windows whose index is that of this element
//   average   y[n, c, p, q] = sum of x over the window / divisor
//             dx[n, c, h, w] = sum of dy / divisor over the windows that hold this element
//
// Window (p, q) begins at row p * stride_h - pad_top and column q * stride_w - pad_left. What lies outside the image is
// no maximum, and adds nothing to a sum. docs/notation.md has the extents and layouts.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// average: the divisor is R * S, padding counted; average_inside: the window's elements inside the image.
enum class Pooling : std::uint8_t { maximum, average, average_inside };

// x and dx are n,c,h,w; y, dy and indices are n,c,P,Q. Padding is smaller than the window, so that every window holds
// an element of the image.
struct Pool2dProblem {
  Pooling pooling = Pooling::maximum;
  bool backward = false;
  DataType type = DataType::f32;  // f32, f64, f16 or bf16
  Layout layout = Layout::nchw;
  std::int64_t n = 0, c = 0, h = 0, w = 0, r = 0, s = 0;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t stride_h = 1, stride_w = 1;
  std::string name;  // no part of equality

  bool operator==(const Pool2dProblem& other) const;
};
const operations::Operation& operation_of(const Pool2dProblem*);

// Extents of the output: rows P and columns Q.
std::int64_t P(const Pool2dProblem& problem);
std::int64_t Q(const Pool2dProblem& problem);

// Packed arrays in the problem's layout. Forward x is read, y and, of a maximum, `indices` (s32) are written. Backward
// x is dx, which is written; y is dy, which is read, and of a maximum `indices`, as the forward pass wrote them.
struct Pool2dRun {
  Operand x = {}, y = {}, indices = {};
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class Pool2dPlan {
 public:
  Pool2dPlan(const Context& context, const Pool2dProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const Pool2dProblem& problem() const { return *plan_.problem().get_if<Pool2dProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const Pool2dRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const Pool2dRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
