// batch, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include "omniconv/batch.h"
#include "operations/solver.h"

namespace omniconv::operations {

struct BatchArrays {
  Operand images, labels, order, table, y, classes;
};

// The scalars of a run in their order: first; of problems with a draw epoch, seed0, seed1 and seed2, too.
constexpr std::size_t most_batch_scalars = 5;

// The task is the problem itself.
class BatchPlanBody : public PlanBody {
 public:
  explicit BatchPlanBody(const BatchProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked; its workspace is where the offer asked for one.
  virtual void append(devices::Sequence& sequence, const BatchArrays& run, std::span<const Scalar> scalars,
                      const Operand& workspace) const = 0;
  const BatchProblem& problem() const { return problem_; }

 private:
  BatchProblem problem_;
};

using BatchSolver = SolverOf<BatchProblem>;

inline std::int64_t elements_of_image(const BatchProblem& problem) {
  return problem.c * problem.h * problem.w;
}
// Whether images are changed by chance.
inline bool has_draw(const BatchProblem& problem) {
  return problem.flip || problem.shift > 0;
}
// Of the images of the batch, of their entries, labels and classes, of what is written, and of the table.
double least_bytes(const BatchProblem& problem);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> batch_solvers();

const BatchSolver& batch_direct_cpu();
const BatchSolver& batch_direct_gpu();
const BatchSolver& batch_reference();

}  // namespace omniconv::operations
