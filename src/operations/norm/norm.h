// norm, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include <cmath>

#include "core/checked.h"
#include "omniconv/norm.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Of one run.
struct NormArrays {
  Operand g, factor, sum, workspace;
  Scalar most, scale;
};

// The task is the problem itself.
class NormPlanBody : public PlanBody {
 public:
  explicit NormPlanBody(const NormProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays, and scalars that are not changing, have been checked.
  virtual void append(devices::Sequence& sequence, const NormArrays& run) const = 0;
  const NormProblem& problem() const { return problem_; }

 private:
  NormProblem problem_;
};

using NormSolver = SolverOf<NormProblem>;

// Of sum and factor.
inline DataType sum_type(const NormProblem& problem) {
  return problem.type == DataType::f64 ? DataType::f64 : DataType::f32;
}

// The order in which squares are added up, README.md of norm/direct: elements of a piece, and pieces, by turns to so
// many chains.
constexpr std::int64_t norm_chains = 512, elements_of_norm_piece = 16 * norm_chains;
inline std::int64_t pieces_of(const NormProblem& problem) {
  return divide_up(problem.n, elements_of_norm_piece);
}

// The factor of a sum, line for line as README.md of norm/direct says.
template <typename Real>
Real norm_factor(Real sum, Real most, Real scale) {
  if (!(sum < std::numeric_limits<Real>::infinity())) return sum - sum;  // NaN
  const Real scaled = scale * std::sqrt(sum), length = scaled + static_cast<Real>(1e-6), ratio = most / length;
  return scale * (ratio < 1 ? ratio : Real{1});
}

// Of every array once.
double least_bytes(const NormProblem& problem);

// README.md of norm/direct derives it: of sums so many of whose additions depend on one another at most.
ErrorBound norm_bound(const NormProblem& problem, std::int64_t chain);
// Of the promised order.
std::int64_t norm_chain(const NormProblem& problem);
// Of more, what is added at last may be lost; empty where there are no more.
inline std::string long_norm_refusal(const NormProblem& problem) {
  constexpr std::int64_t most = std::int64_t{1} << 22;
  const std::int64_t chain = norm_chain(problem);
  return chain <= most ? "" : fmt::format("sums have chains of {} additions: {} are the most", chain, most);
}

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> norm_solvers();

const NormSolver& norm_direct_cpu();
const NormSolver& norm_direct_gpu();
const NormSolver& norm_reference();

}  // namespace omniconv::operations
