// bias_add: a number for each channel is added to all of its elements, and backward the gradient of these numbers: a
// channel's sum. Problem -> plan -> run, on the caller's memory.
//
//   forward    y[n,c,h,w] = x[n,c,h,w] + b[c]
//   backward   db[c] = sum over n, h, w of dy[n,c,h,w]          (x's gradient is dy itself)
//
// and with relu
//
//   forward    y[n,c,h,w] = max(x[n,c,h,w] + b[c], 0)
//   backward   dx[n,c,h,w] = dy[n,c,h,w] where y[n,c,h,w] > 0, else 0; db[c] = sum over n, h, w of dx[n,c,h,w]
//
// conv2d and gemm add a bias by themselves; docs/notation.md has the text.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// x, y, dx and dy are n,c,h,w, packed, in the layout; b and db have c elements.
struct BiasAddProblem {
  bool backward = false, relu = false;
  DataType type = DataType::f32;  // f32, f64, f16 or bf16
  Layout layout = Layout::nchw;
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  std::string name;  // no part of equality

  bool operator==(const BiasAddProblem& other) const;
};
const operations::Operation& operation_of(const BiasAddProblem*);

// Forward x and b are read and y is written. Backward y is dy, which is read, and b is db, which is written; with relu
// x is dx, which is written, and `output` is forward's y, which is read. What is written may not overlap what is read.
struct BiasAddRun {
  Operand x = {}, b = {}, y = {}, output = {};
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class BiasAddPlan {
 public:
  BiasAddPlan(const Context& context, const BiasAddProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const BiasAddProblem& problem() const { return *plan_.problem().get_if<BiasAddProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const BiasAddRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const BiasAddRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
