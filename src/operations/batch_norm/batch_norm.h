// batch_norm, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include <cstddef>

#include "devices/device.h"
#include "omniconv/batch_norm.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Where an array lies. Smaller than an Operand, so that a host function holds all arrays of a run.
struct NormArray {
  Buffer buffer = {};
  std::int64_t offset_bytes = 0;
};
// Null where there is none.
inline std::byte* host(const NormArray& array) {
  return array.buffer ? array.buffer.impl()->host() + array.offset_bytes : nullptr;
}

// Empty where the problem has no such array.
struct BatchNormArrays {
  NormArray x, gamma, beta, mean, invstd, running_mean, running_var, dy, dgamma, dbeta;
  NormArray result;     // y, backward dx
  NormArray workspace;  // where the offer asked for one
};

// The task is the problem itself.
class BatchNormPlanBody : public PlanBody {
 public:
  explicit BatchNormPlanBody(const BatchNormProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked. Scalars are epsilon and momentum, as far as the pass has them.
  virtual void append(devices::Sequence& sequence, const BatchNormArrays& run,
                      std::span<const Scalar> scalars) const = 0;
  const BatchNormProblem& problem() const { return problem_; }

 private:
  BatchNormProblem problem_;
};

using BatchNormSolver = SolverOf<BatchNormProblem>;

// Where a channel's elements lie: `planes` times `inner` of them, one after the other, from one plane to the next
// c * inner further.
struct NormPlanes {
  std::int64_t planes = 0, inner = 0;

  explicit NormPlanes(const BatchNormProblem& p)
      : planes(p.layout == Layout::nhwc ? p.n * p.h * p.w : p.n), inner(p.layout == Layout::nhwc ? 1 : p.h * p.w) {}
  std::int64_t positions() const { return planes * inner; }  // of a channel
};

// Of the channels' numbers.
inline DataType channel_type(const BatchNormProblem& problem) {
  return problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
}
inline std::int64_t elements_of(const BatchNormProblem& problem) {
  return problem.n * problem.c * problem.h * problem.w;
}
// Operations of an element by definition.
double operations_of_element(const BatchNormProblem& problem);
// Of what is as large as x: forward x is read for its moments and for y, backward x and dy are read for the sums and
// for dx.
double moved_bytes(const BatchNormProblem& problem);

// README.md of batch_norm/direct derives it: of moments and sums that are rounded so many times.
ErrorBound batch_norm_bound(const BatchNormProblem& problem, std::int64_t roundings);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> batch_norm_solvers();

const BatchNormSolver& batch_norm_direct_cpu();
const BatchNormSolver& batch_norm_direct_gpu();
const BatchNormSolver& batch_norm_reference();

}  // namespace omniconv::operations
