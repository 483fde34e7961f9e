// bias_add, for its solvers: what they are asked, what they make, and what they share.
#pragma once

#include "omniconv/bias_add.h"
#include "operations/solver.h"

namespace omniconv::operations {

// The task is the problem itself.
class BiasAddPlanBody : public PlanBody {
 public:
  explicit BiasAddPlanBody(const BiasAddProblem& problem) : problem_(problem) {}
  void append(devices::Sequence& sequence, const RunArrays& run) const final;
  // The arrays of `run` have been checked; its workspace is where the offer asked for one.
  virtual void append(devices::Sequence& sequence, const BiasAddRun& run, const Operand& workspace) const = 0;
  const BiasAddProblem& problem() const { return problem_; }

 private:
  BiasAddProblem problem_;
};

using BiasAddSolver = SolverOf<BiasAddProblem>;

// Where a channel's elements lie: `planes` times `inner` of them, one after the other, from one plane to the next
// c * inner further.
struct ChannelPlanes {
  std::int64_t planes = 0, inner = 0;

  explicit ChannelPlanes(const BiasAddProblem& p)
      : planes(p.layout == Layout::nhwc ? p.n * p.h * p.w : p.n), inner(p.layout == Layout::nhwc ? 1 : p.h * p.w) {}
  std::int64_t positions() const { return planes * inner; }  // of a channel
};

inline std::int64_t elements_of(const BiasAddProblem& problem) {
  return problem.n * problem.c * problem.h * problem.w;
}
// Of every array once.
double least_bytes(const BiasAddProblem& problem);

// README.md of bias_add/direct derives it: of sums backward, so many of whose additions depend on one another at most.
ErrorBound bias_add_bound(const BiasAddProblem& problem, std::int64_t chain);
// Of more, what is added at last may be lost; empty where there are no more.
inline std::string long_chain_refusal(std::int64_t chain) {
  constexpr std::int64_t most = std::int64_t{1} << 22;
  return chain <= most
             ? ""
             : fmt::format("sums have chains of {} additions: {} are the most, and a workspace cuts them", chain, most);
}

// The candidates, in order; the reference closes the list.
std::span<const Solver* const> bias_add_solvers();

const BiasAddSolver& bias_add_direct_cpu();
const BiasAddSolver& bias_add_direct_gpu();
const BiasAddSolver& bias_add_rungs_gpu();
const BiasAddSolver& bias_add_reference();

}  // namespace omniconv::operations
