// activation: a function of each element by itself, forward and backward. Problem -> plan -> run, on the caller's
// memory.
//
//   relu      y = x where x > 0, else 0          dx = dy where y > 0, else 0
//   sigmoid   y = 1 / (1 + exp(-x))              dx = dy * y * (1 - y)
//   tanh      y = tanh(x)                        dx = dy * (1 - y * y)
//
// NaN stays NaN: relu passes x through where it is NaN, and dy where y is. Backward reads y, not x, as it can be kept
// for the layer behind. docs/notation.md has the text.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

enum class Activation : std::uint8_t { relu, sigmoid, tanh };

// All arrays are n,c,h,w, packed, in the layout.
struct ActivationProblem {
  Activation function = Activation::relu;
  bool backward = false;
  DataType type = DataType::f32;  // f32, f64, f16 or bf16
  Layout layout = Layout::nchw;
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  std::string name;  // no part of equality

  bool operator==(const ActivationProblem& other) const;
};
const operations::Operation& operation_of(const ActivationProblem*);

// Forward x is read and y is written, and there is no dy. Backward y and dy are read and x is dx, which is written.
// What is written may not overlap what is read.
struct ActivationRun {
  Operand x = {}, y = {}, dy = {};
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class ActivationPlan {
 public:
  ActivationPlan(const Context& context, const ActivationProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const ActivationProblem& problem() const { return *plan_.problem().get_if<ActivationProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const ActivationRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const ActivationRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
