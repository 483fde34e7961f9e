// update: one step of a network's parameters by their gradient, as PyTorch's torch.optim.SGD and Adam define it.
// Problem -> plan -> run, on the caller's memory. The parameters of a whole model may lie in one array.
//
//   g' = clipped(g * factor) + l2 * w + l1 * sign(w)
//   sgd       m = momentum * m + g'          w = w - rate * m
//   nesterov  m = momentum * m + g'          w = w - rate * (g' + momentum * m)
//   adam      m = m + (1 - beta1) * (g' - m), v = beta2 * v + (1 - beta2) * g'^2
//             w = w - rate / correction1 * m / (sqrt(v) / sqrt(correction2) + epsilon)
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

struct UpdateProblem {
  enum class Rule : std::uint8_t { sgd, nesterov, adam };

  Rule rule = Rule::sgd;
  bool scaled = false;            // g is multiplied by `factor`, which lies in the device's memory
  bool guarded = false;           // an element whose gradient is not finite keeps its values and stops later steps
  DataType type = DataType::f32;  // of g: f32, f64, f16 or bf16
  std::int64_t n = 0;             // elements
  std::string name = {};          // no part of equality

  bool operator==(const UpdateProblem& other) const;
};
const operations::Operation& operation_of(const UpdateProblem*);

// Packed, n elements each: g of the problem's type; w, m and v f32, f64 of an f64 problem. No two overlap.
struct UpdateRun {
  Operand g = {};     // the gradient, read
  Operand w = {};     // the parameters, changed
  Operand m = {};     // sgd and nesterov: the momentum buffer; adam: the first moment; changed. 0 before the first step
  Operand v = {};     // of adam: the second moment, changed. 0 before the first step
  Operand copy = {};  // of f16 and bf16: w rounded to the problem's type, written
  Operand factor = {};  // of `scaled`: one number like w, read
  // Of `guarded`: one s32, 0 before the first step. An element whose g * factor is not finite keeps w, m and v, and
  // stop, if it is 0, becomes `number`; the others are updated (none of a factor that is not finite). Where stop is
  // another number all keep them: so no later step changes anything until stop is set to 0. `copy` is w rounded in any
  // case. Runs of one number are parts of one step, of which none stops another: a later step that repeats the number
  // of the one that was stopped changes what is finite. Let each step have a larger number than those before.
  Operand stop = {};

  Scalar number = 1;  // of `guarded`: a whole number from 1 to 2^24, such as the step's
  Scalar rate = 1e-3;
  Scalar l1 = 0, l2 = 0;                                  // of |w| and w^2 / 2, added to what is minimized
  Scalar clip = std::numeric_limits<double>::infinity();  // the largest magnitude of an element of g * factor
  Scalar momentum = 0;                                    // of sgd and nesterov
  Scalar beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;      // of adam
  Scalar correction1 = 1, correction2 = 1;                // of adam: adam_corrections gives them
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// 1 - beta1^step and 1 - beta2^step: what the moments, which begin at 0, lack of means after so many steps, this one
// counted. Steps begin at 1; betas are from 0 to less than 1. Throws bad_input for others.
struct AdamCorrections {
  double first = 1, second = 1;
};
AdamCorrections adam_corrections(std::int64_t step, double beta1 = 0.9, double beta2 = 0.999);

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing.
class UpdatePlan {
 public:
  UpdatePlan(const Context& context, const UpdateProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const UpdateProblem& problem() const { return *plan_.problem().get_if<UpdateProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context.
  Event run(Queue& queue, const UpdateRun& run) const;
  // The same work at the end of a sequence of the plan's context. Recorded, each replay is a step: scalars that are
  // changing may be set between.
  void append(Sequence& sequence, const UpdateRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
