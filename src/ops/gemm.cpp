#include "omniconv/gemm.h"

#include "ops/matrix_choice.h"
#include "ops/operand_check.h"
#include "solvers/gemm/gemm.h"

namespace omniconv {
namespace {

std::shared_ptr<const solvers::GemmPlanBody> make_body(const Context& context, const GemmProblem& problem,
                                                       const SolverOptions& options) {
  const solvers::GemmTask task = solvers::task_for(problem);
  const solvers::GemmSolver& solver =
      chosen(solvers::gemm_solvers(), task, problem.type, *context.impl(), options, to_text(problem));
  return solvers::make_plan(solver, task, context.impl(), options.max_workspace_bytes);
}

}  // namespace

GemmPlan::GemmPlan(const Context& context, const GemmProblem& problem, const SolverOptions& options)
    : body_(make_body(context, problem, options)) {}

const GemmProblem& GemmPlan::problem() const {
  return body_->task.problem;
}
const std::string& GemmPlan::solver() const {
  return body_->solver_id;
}
std::int64_t GemmPlan::workspace_bytes() const {
  return body_->workspace_bytes();
}
double GemmPlan::compile_seconds() const {
  return body_->compile_seconds();
}

Event GemmPlan::run(Queue& queue, const GemmRun& run) const {
  const GemmProblem& p = problem();
  const Array a{"a", run.a, p.batch * p.m * p.k, p.type}, b{"b", run.b, p.batch * p.k * p.n, p.type},
      c{"c", run.c, p.batch * p.m * p.n, p.type};
  check_arrays({a, b}, c, false, *body_->device);
  check_workspace(run.workspace, workspace_bytes(), solver(), *body_->device, {part_of(a), part_of(b), part_of(c)});
  return body_->run(present(queue), {.a = run.a, .b = run.b, .c = run.c, .bias = {}, .workspace = {run.workspace, 0}});
}

std::vector<Candidate> explain(const Context& context, const GemmProblem& problem, const SolverOptions& options) {
  return candidates_for(solvers::gemm_solvers(), solvers::task_for(problem), problem.type, *context.impl(), options);
}

}  // namespace omniconv
