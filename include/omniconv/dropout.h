// dropout: elements are kept by chance and made larger, the others become 0 (Srivastava, Hinton, Krizhevsky, Sutskever,
// Salakhutdinov: "Dropout", 2014). Problem -> plan -> run, on the caller's memory.
//
//   y[i] = x[i] * (1 / (1 - rate)) where element i is kept, else 0
//
// Backward is the same function, of dy with the numbers of the forward run. Which elements are kept is no array but a
// function of the run's numbers, the same on every device and for every type, as the bits of y are: docs/arithmetic.md.
// docs/notation.md has the text.
#pragma once

#include <cstdint>
#include <string>

#include "omniconv/context.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv {

struct DropoutProblem {
  DataType type = DataType::f32;  // f32, f64, f16 or bf16
  std::int64_t n = 0;             // elements
  std::string name = {};          // no part of equality

  bool operator==(const DropoutProblem& other) const;
};
const operations::Operation& operation_of(const DropoutProblem*);

// Packed, n elements each. y may be x itself, the same memory from its first byte to its last; else they are apart.
struct DropoutRun {
  Operand x = {};     // read
  Operand y = {};     // written
  double rate = 0.5;  // the chance that an element is not kept: from 0 to less than 1
  // What decides, beside the element's number: the same three decide the same.
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;  // such as the number of a layer
  Scalar step = 0;           // a whole number from 0 to 2^24; of one that is changing, what is outside becomes the end
  // At least workspace_bytes(), for this run alone; at a multiple of 64 bytes, as what Context::allocate gives.
  Buffer workspace = {};
};

// Immutable, usable from many threads. Making one may compile device text; run() allocates nothing. By names, a Plan's
// scalars are rate, seed and seed_high (the lower and upper 32 bits), stream and step, of which the last alone may be
// changing.
class DropoutPlan {
 public:
  DropoutPlan(const Context& context, const DropoutProblem& problem, const SolverOptions& options = {})
      : plan_(context, problem, options) {}

  const DropoutProblem& problem() const { return *plan_.problem().get_if<DropoutProblem>(); }
  const std::string& solver() const { return plan_.solver(); }
  std::int64_t workspace_bytes() const { return plan_.workspace_bytes(); }
  double compile_seconds() const { return plan_.compile_seconds(); }  // that making the plan spent on device text
  // Asynchronous on a queue of the plan's context. Throws for numbers outside their ranges.
  Event run(Queue& queue, const DropoutRun& run) const;
  // The same work at the end of a sequence of the plan's context. Recorded, each replay reads a step that is changing.
  void append(Sequence& sequence, const DropoutRun& run) const;

  const Plan& plan() const { return plan_; }

 private:
  Plan plan_;
};

}  // namespace omniconv
