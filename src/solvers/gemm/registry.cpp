// The candidates, one line each, closed by the reference.
#include <fmt/format.h>

#include <array>

#include "omniconv/error.h"
#include "solvers/gemm/gemm.h"

namespace omniconv::solvers {

std::span<const GemmSolver* const> gemm_solvers() {
  static const std::array<const GemmSolver*, 4> solvers = {
      &gemm_packed_cpu(),
      &gemm_tiled_gpu(),
      &gemm_plain_gpu(),
      &gemm_reference(),
  };
  return solvers;
}

const GemmSolver& best_gemm(const GemmTask& task, const devices::Device& device) {
  const GemmSolver* best = nullptr;
  for (const GemmSolver* solver : gemm_solvers())
    if (solver->refusal(task, device).empty() &&
        (best == nullptr || solver->cost(task, device) < best->cost(task, device)))
      best = solver;
  if (best == nullptr) throw bad_input(fmt::format("no gemm serves {} on {}", to_text(task.problem), device.info().id));
  return *best;
}

std::shared_ptr<const GemmPlanBody> make_plan(const GemmSolver& solver, const GemmTask& task,
                                              const std::shared_ptr<devices::Device>& device,
                                              std::int64_t workspace_limit) {
  std::unique_ptr<GemmPlanBody> body = solver.plan(task, device, workspace_limit);
  body->task = task;
  body->solver_id = solver.id();
  body->device = device;
  return body;
}

GemmTask task_for(const GemmProblem& problem) {
  validate(problem);
  GemmTask task;
  task.problem = problem;
  task.output = problem.type;
  task.lda = problem.transpose_a ? problem.m : problem.k;
  task.ldb = problem.transpose_b ? problem.k : problem.n;
  task.ldc = problem.n;
  task.batch_a = problem.m * problem.k;
  task.batch_b = problem.k * problem.n;
  task.batch_c = problem.m * problem.n;
  return task;
}

}  // namespace omniconv::solvers
