// update, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include "omniconv/update.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Empty where the problem has no such array.
struct UpdateArrays {
  Operand g, w, m, v, copy, factor, stop;
};

// The numbers of a run as kernels and host functions are given them, each rounded once to the type of w by whoever
// takes it: rate, l1, l2, clip; of sgd and nesterov momentum; of adam 1 - beta1, beta2, 1 - beta2, epsilon,
// correction1, correction2.
constexpr std::size_t most_update_numbers = 10;

// The task is the problem itself.
class UpdatePlanBody : public PlanBody {
 public:
  explicit UpdatePlanBody(const UpdateProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked. `number`: what stop becomes.
  virtual void append(devices::Sequence& sequence, const UpdateArrays& run, std::span<const Scalar> numbers,
                      const Scalar& number) const = 0;
  const UpdateProblem& problem() const { return problem_; }

 private:
  UpdateProblem problem_;
};

using UpdateSolver = SolverOf<UpdateProblem>;

// Of w, m and v.
inline DataType state_type(const UpdateProblem& problem) {
  return problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
}
inline bool has_copy(const UpdateProblem& problem) {
  return problem.type == DataType::f16 || problem.type == DataType::bf16;
}
// Operations of an element by definition, comparisons, roots and divisions among them.
double operations_of_element(const UpdateProblem& problem);
// Of every array once, and twice of those that are changed.
double least_bytes(const UpdateProblem& problem);

// README.md of update/direct derives it.
ErrorBound update_bound(const UpdateProblem& problem);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> update_solvers();

const UpdateSolver& update_direct_cpu();
const UpdateSolver& update_direct_gpu();
const UpdateSolver& update_rungs_gpu();
const UpdateSolver& update_reference();

}  // namespace omniconv::operations
