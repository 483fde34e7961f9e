// add: a residual connection, with the shortcut without parameters of residual networks (He, Zhang, Ren, Sun: "Deep
// residual learning for image recognition", 2015, option A). Problem -> plan -> run, on the caller's memory.
//
//   forward    y[n,j,p,q] = x[n,j,p,q] + s[n,j-b,p*u,q*u] where 0 <= j-b < c, else x[n,j,p,q]; relu: 0 if not above 0
//   backward   ds[n,i,p,q] = d[n,i,p,q] + dy[n,i+b,p/u,q/u] where u divides p and q, else d[n,i,p,q]
//
// with b = (k - c) / 2, rounded down.
// s has another reader as a rule, from which the gradient d comes. The gradient of x is dy itself. Every sum is rounded
// once, so that the bits are the same on every device; docs/notation.md has the text.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// s, d and ds are n,c,h,w; x, y and dy are n,k,P,Q; packed, in the layout.
struct AddProblem {
  bool backward = false;
  DataType type = DataType::f32;  // f32, f64, f16 or bf16
  Layout layout = Layout::nchw;
  bool relu = false;  // of the forward pass
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  std::int64_t k = 0;  // channels of y: c or more
  std::int64_t stride = 1;
  std::string name;  // no part of equality

  bool operator==(const AddProblem& other) const;
};
const operations::Operation& operation_of(const AddProblem*);

// Rows and columns of y: h / u and w / u, rounded up.
constexpr std::int64_t P(const AddProblem& problem) {
  return (problem.h - 1) / problem.stride + 1;
}
constexpr std::int64_t Q(const AddProblem& problem) {
  return (problem.w - 1) / problem.stride + 1;
}

// What is written may not overlap what is read, but y may be x itself, and ds may be d: the same memory from its first
// byte to its last.
struct AddRun {
  Operand x = {};  // forward: read
  Operand s = {};  // forward: read; backward: ds, written
  Operand y = {};  // forward: written; backward: dy, read
  Operand d = {};  // backward: read
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class AddPlan {
 public:
  AddPlan(const Context& context, const AddProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const AddProblem& problem() const { return *plan_.problem().get_if<AddProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const AddRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const AddRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
