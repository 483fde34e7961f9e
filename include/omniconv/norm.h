// norm: the 2-norm of a gradient, and by what it is to be multiplied so that it is no longer than asked, as PyTorch's
// torch.nn.utils.clip_grad_norm_ defines it. Problem -> plan -> run, on the caller's memory.
//
//   sum = sum over i of g[i]^2          (with acc: and what it was)
//   factor = scale * min(1, most / (scale * sqrt(sum) + 1e-6))
//
// A gradient in several arrays has several of these, each but the first with acc; the last one's factor counts. It is
// what `update scaled` multiplies by. Where the sum is not finite the factor is NaN, at which `update guarded` stops.
//
// The bits are promised, the same on every device: docs/arithmetic.md. docs/notation.md has the text.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

struct NormProblem {
  bool accumulate = false;        // `sum` is added to
  DataType type = DataType::f32;  // of g: f32, f64, f16 or bf16
  std::int64_t n = 0;             // elements
  std::string name = {};          // no part of equality

  bool operator==(const NormProblem& other) const;
};
const operations::Operation& operation_of(const NormProblem*);

// g has n elements of the problem's type; factor and sum are one number each, f32, f64 of an f64 problem. No two
// overlap.
struct NormRun {
  Operand g = {};       // read
  Operand factor = {};  // written
  Operand sum = {};     // written; with acc it is read, too

  Scalar most = std::numeric_limits<double>::infinity();  // the largest norm, of 0 or more; infinity: any
  Scalar scale = 1;                                       // of g, above 0: 1 / 128 of gradients of a loss times 128
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class NormPlan {
 public:
  NormPlan(const Context& context, const NormProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const NormProblem& problem() const { return *plan_.problem().get_if<NormProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const NormRun& run) const;
  // The same work at the end of a sequence of the plan's context. Recorded, scalars that are changing may be set
  // between replays.
  void append(Sequence& sequence, const NormRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
