// activation, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include "omniconv/activation.h"
#include "operations/solver.h"

namespace omniconv::operations {

// The task is the problem itself.
class ActivationPlanBody : public PlanBody {
 public:
  explicit ActivationPlanBody(const ActivationProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked.
  virtual void append(devices::Sequence& sequence, const ActivationRun& run) const = 0;
  const ActivationProblem& problem() const { return problem_; }

 private:
  ActivationProblem problem_;
};

using ActivationSolver = SolverOf<ActivationProblem>;

inline std::int64_t elements_of(const ActivationProblem& problem) {
  return problem.n * problem.c * problem.h * problem.w;
}
// Operations of an element by definition, comparisons, exponentials and divisions among them.
double operations_of_element(const ActivationProblem& problem);
// Of every array once.
double least_bytes(const ActivationProblem& problem);

// README.md of activation/direct derives it.
ErrorBound activation_bound(const ActivationProblem& problem);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> activation_solvers();

const ActivationSolver& activation_direct_cpu();
const ActivationSolver& activation_direct_gpu();
const ActivationSolver& activation_rungs_gpu();
const ActivationSolver& activation_reference();

}  // namespace omniconv::operations
