// loss: the error of a network's output, and its gradient. x is n x c, row-major: c numbers for each of n examples. A
// row has a loss of its own. Problem -> plan -> run, on the caller's memory.
//
//   softmax   y[i] = log(sum over j of exp(x[i, j])) - x[i, labels[i]]
//             dx[i, j] = scale * (exp(x[i, j]) / (sum over k of exp(x[i, k])) - (1 where j is labels[i], else 0))
//   mse       y[i] = (sum over j of (x[i, j] - t[i, j])^2) / c
//             dx[i, j] = scale * 2 / c * (x[i, j] - t[i, j])
//
// With `sums` a backward pass adds y[i] to what is there, too: the gradient and the sum of losses over many steps by
// one reading of x.
//
// Exponentials are of differences from the row's maximum, so that none overflows. The mean over a batch is the sum of y
// by n, and its gradient that of scale 1 / n. docs/notation.md has the text, and what NaN and infinities give.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

enum class Loss : std::uint8_t { softmax, mse };

struct LossProblem {
  Loss loss = Loss::softmax;
  bool backward = false, sums = false;  // sums: of backward alone
  DataType type = DataType::f32;        // f32, f64, f16 or bf16
  std::int64_t n = 0, c = 0;            // rows, and the length of a row: of softmax its classes
  std::string name;                     // no part of equality

  bool operator==(const LossProblem& other) const;
};
const operations::Operation& operation_of(const LossProblem*);

// Packed. Both passes read x, n x c of the problem's type, and
//   softmax   labels, n of s32; one outside [0, c) makes its row's y NaN, or all of the row's dx
//   mse       t, as x
// Forward y is written, n of f32 (f64 of f64), and backward dx, as x; with sums forward's y is added to y as well, by
// one addition in its type. What is written may not overlap what is read.
struct LossRun {
  Operand x = {}, labels = {}, t = {}, y = {}, dx = {};
  Scalar scale = 1;  // of dx, rounded to the type of sums: 1 / n for the mean, times the scale of a loss in f16
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class LossPlan {
 public:
  LossPlan(const Context& context, const LossProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const LossProblem& problem() const { return *plan_.problem().get_if<LossProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const LossRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const LossRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
