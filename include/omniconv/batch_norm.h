// batch_norm: each channel is brought to mean 0 and variance 1, over a batch and its images, then scaled and shifted,
// as PyTorch's BatchNorm2d defines it. Problem -> plan -> run, on the caller's memory.
//
//   forward    mean[c] and var[c] = mean and variance of x[n,c,h,w] over n, h, w;   N = n * h * w of them
//              invstd[c] = 1 / sqrt(var[c] + epsilon)
//              y = (x - mean[c]) * (gamma[c] * invstd[c]) + beta[c];   of `relu` max(y, 0)
//              running_mean = (1 - momentum) * running_mean + momentum * mean
//              running_var = (1 - momentum) * running_var + momentum * var * N / (N - 1)
//   inference  y as above, of running_mean and running_var
//   backward   g = dy;   of `relu` 0 where y is not greater than 0
//              dbeta[c] = sum of g,   dgamma[c] = sum of g * xhat,   with xhat = (x - mean[c]) * invstd[c]
//              dx = gamma[c] * invstd[c] * (g - (dbeta[c] + xhat * dgamma[c]) / N)
//
// Backward y is computed again, to the bit, so that it need not be kept: docs/arithmetic.md. docs/notation.md has the
// text.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

// x, y, dy and dx are n,c,h,w, packed, in the layout and of the type; the other arrays have c elements of f32, of an
// f64 problem f64.
struct BatchNormProblem {
  enum class Pass : std::uint8_t { forward, inference, backward };

  Pass pass = Pass::forward;
  bool relu = false;
  DataType type = DataType::f32;  // f32, f64, f16 or bf16
  Layout layout = Layout::nchw;
  std::int64_t n = 0, c = 0, h = 0, w = 0;  // n * h * w is 2 at least, but of inference
  std::string name = {};                    // no part of equality

  bool operator==(const BatchNormProblem& other) const;
};
const operations::Operation& operation_of(const BatchNormProblem*);

// Of arrays that a pass has no use for, nothing is said. What is written may not overlap what is read.
struct BatchNormRun {
  Operand x = {}, gamma = {}, beta = {};        // read in every pass
  Operand y = {};                               // written, forward and of inference
  Operand mean = {}, invstd = {};               // of the batch: written forward, read backward
  Operand running_mean = {}, running_var = {};  // changed forward, read of inference
  Operand dy = {}, dx = {};                     // backward: read, written
  Operand dgamma = {}, dbeta = {};              // written backward
  double epsilon = 1e-5;                        // forward and of inference
  Scalar momentum = 0.1;                        // forward
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class BatchNormPlan {
 public:
  BatchNormPlan(const Context& context, const BatchNormProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const BatchNormProblem& problem() const { return *plan_.problem().get_if<BatchNormProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const BatchNormRun& run) const;
  // The same work at the end of a sequence of the plan's context.
  void append(Sequence& sequence, const BatchNormRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
