// dropout, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include <algorithm>

#include "core/philox.h"
#include "omniconv/dropout.h"
#include "operations/solver.h"

namespace omniconv::operations {

// The numbers of a run but its step.
struct DropoutNumbers {
  std::uint32_t threshold = 0;  // an element is kept whose word is this or more
  double scale = 1;             // what it is multiplied by: an f32 number, unless the problem is f64
  std::uint64_t seed = 0;
  std::uint32_t stream = 0;
};
// rate * 2^32, rounded up, and 2^32 - 1 at most.
std::uint32_t dropout_threshold(double rate);
// 1 / (1 - rate) in double precision, rounded to f32 unless the problem is f64.
double dropout_scale(DataType type, double rate);

// The words of a step that was given as a number: 0 to 2^24.
constexpr double most_dropout_step = 0x1p24;
inline std::uint32_t dropout_step(double step) {
  return step > 0 ? static_cast<std::uint32_t>(std::min(step, most_dropout_step)) : 0;
}
inline PhiloxStream dropout_words(const DropoutNumbers& numbers, double step) {
  return PhiloxStream(numbers.seed, PhiloxUse::dropout, numbers.stream, dropout_step(step));
}

// The task is the problem itself.
class DropoutPlanBody : public PlanBody {
 public:
  explicit DropoutPlanBody(const DropoutProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays and numbers have been checked. x and y may be the same memory.
  virtual void append(devices::Sequence& sequence, const Operand& x, const Operand& y, const DropoutNumbers& numbers,
                      const Scalar& step) const = 0;
  const DropoutProblem& problem() const { return problem_; }

 private:
  DropoutProblem problem_;
};

using DropoutSolver = SolverOf<DropoutProblem>;

// Of both arrays once.
double least_bytes(const DropoutProblem& problem);

// The bits are defined: README.md of dropout/direct.
ErrorBound dropout_bound(const DropoutProblem& problem);

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> dropout_solvers();

const DropoutSolver& dropout_direct_cpu();
const DropoutSolver& dropout_direct_gpu();
const DropoutSolver& dropout_reference();

}  // namespace omniconv::operations
