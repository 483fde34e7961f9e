// loss, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include "omniconv/loss.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Of one run. `target` is what x should have been: labels of softmax, t of mse. y is empty where no losses are asked
// for, dx forward.
struct LossArrays {
  Operand x = {}, target = {}, y = {}, dx = {};
  Scalar scale = 1;
};

// The task is the problem itself.
class LossPlanBody : public PlanBody {
 public:
  explicit LossPlanBody(const LossProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays have been checked.
  virtual void append(devices::Sequence& sequence, const LossArrays& arrays) const = 0;
  const LossProblem& problem() const { return problem_; }

 private:
  LossProblem problem_;
};

using LossSolver = SolverOf<LossProblem>;

inline std::int64_t elements_of(const LossProblem& problem) {
  return problem.n * problem.c;
}
// Whether a run finds losses: all but backward ones without sums.
inline bool has_losses(const LossProblem& problem) {
  return !problem.backward || problem.sums;
}
// Of y.
inline DataType loss_type(const LossProblem& problem) {
  return problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
}
// Operations of an element by definition, exponentials among them.
double operations_of_element(const LossProblem& problem);
// Of every array once.
double least_bytes(const LossProblem& problem);

// Of sums with so many dependent additions, whose terms are multiplied by so many exponentials after they are added.
// README.md of loss/direct derives it.
ErrorBound loss_bound(const LossProblem& problem, double chain, double rescalings);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> loss_solvers();

const LossSolver& loss_direct_cpu();
const LossSolver& loss_direct_gpu();
const LossSolver& loss_rungs_gpu();
const LossSolver& loss_reference();

}  // namespace omniconv::operations
