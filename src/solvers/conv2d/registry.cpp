// The candidates, one line each, closed by the reference.
#include <array>

#include "solvers/conv2d/conv2d.h"

namespace omniconv::solvers {

std::span<const Conv2dSolver* const> conv2d_solvers() {
  static const std::array<const Conv2dSolver*, 5> solvers = {
      &conv2d_im2col_gemm_cpu(), &conv2d_im2col_gemm_gpu(), &conv2d_direct_cpu(),
      &conv2d_direct_gpu(),      &conv2d_reference(),
  };
  return solvers;
}

std::shared_ptr<const Conv2dPlanBody> make_plan(const Conv2dSolver& solver, const Conv2dProblem& problem,
                                                const std::shared_ptr<devices::Device>& device,
                                                std::int64_t workspace_limit) {
  std::unique_ptr<Conv2dPlanBody> body = solver.plan(problem, device, workspace_limit);
  body->problem = problem;
  body->solver_id = solver.id();
  body->device = device;
  return body;
}

double multiply_adds(const Conv2dProblem& problem) {
  return static_cast<double>(problem.n) * static_cast<double>(problem.k) * static_cast<double>(P(problem)) *
         static_cast<double>(Q(problem)) * static_cast<double>(problem.c / problem.groups) *
         static_cast<double>(problem.r) * static_cast<double>(problem.s);
}

double longest_sum(const Conv2dProblem& problem) {
  if (problem.pass == Pass::backward_filter)
    return static_cast<double>(problem.n) * static_cast<double>(P(problem)) * static_cast<double>(Q(problem));
  const std::int64_t channels = problem.pass == Pass::forward ? problem.c : problem.k;
  return static_cast<double>(channels / problem.groups) * static_cast<double>(problem.r) *
         static_cast<double>(problem.s);
}

}  // namespace omniconv::solvers
