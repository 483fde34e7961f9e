// pool2d, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include <string>

#include "omniconv/pool2d.h"
#include "operations/solver.h"

namespace omniconv::operations {

// The task is the problem itself.
class Pool2dPlanBody : public PlanBody {
 public:
  explicit Pool2dPlanBody(const Pool2dProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked.
  virtual void append(devices::Sequence& sequence, const Pool2dRun& run) const = 0;
  const Pool2dProblem& problem() const { return problem_; }

 private:
  Pool2dProblem problem_;
};

using Pool2dSolver = SolverOf<Pool2dProblem>;

inline bool has_indices(const Pool2dProblem& problem) {
  return problem.pooling == Pooling::maximum;
}
// Terms of the longest sum, or elements of the largest choice: r * s forward, the windows that hold one element
// backward.
double longest_sum(const Pool2dProblem& problem);
// Elements of all windows.
double window_elements(const Pool2dProblem& problem);
// Of every array once.
double least_bytes(const Pool2dProblem& problem);

// Of sums in fp32 (f64 of f64) in any order, and divisions that round once: README.md derives it.
ErrorBound pool2d_bound(const Pool2dProblem& problem);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> pool2d_solvers();

const Pool2dSolver& pool2d_direct_cpu();
const Pool2dSolver& pool2d_direct_gpu();
const Pool2dSolver& pool2d_reference();

}  // namespace omniconv::operations
