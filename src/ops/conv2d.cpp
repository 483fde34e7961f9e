#include "omniconv/conv2d.h"

#include "core/conv2d_shape.h"
#include "ops/matrix_choice.h"
#include "ops/operand_check.h"
#include "solvers/conv2d/conv2d.h"

namespace omniconv {
namespace {

// Bias and relu are steps of the forward pass: their gradients are the caller's.
void check_pass(const Conv2dProblem& problem) {
  validate(problem);
  if (problem.pass == Pass::forward) return;
  const char* const pass = problem.pass == Pass::backward_data ? "bwd_data" : "bwd_filter";
  const char* const word = problem.bias ? "bias" : problem.relu ? "relu" : nullptr;
  if (word != nullptr)
    throw bad_input(
        fmt::format("{}: {} is of the forward pass, and the pass is {}; leave it out", to_text(problem), word, pass));
}

std::shared_ptr<const solvers::Conv2dPlanBody> make_body(const Context& context, const Conv2dProblem& problem,
                                                         const SolverOptions& options) {
  check_pass(problem);
  const solvers::Conv2dSolver& solver =
      chosen(solvers::conv2d_solvers(), problem, problem.type, *context.impl(), options, to_text(problem));
  return solvers::make_plan(solver, problem, context.impl(), options.max_workspace_bytes);
}

}  // namespace

Conv2dElements elements_of(const Conv2dProblem& problem) {
  validate(problem);
  return {problem.n * problem.c * problem.h * problem.w,
          problem.k * (problem.c / problem.groups) * problem.r * problem.s,
          problem.n * problem.k * P(problem) * Q(problem)};
}

Conv2dPlan::Conv2dPlan(const Context& context, const Conv2dProblem& problem, const SolverOptions& options)
    : body_(make_body(context, problem, options)) {}

const Conv2dProblem& Conv2dPlan::problem() const {
  return body_->problem;
}
const std::string& Conv2dPlan::solver() const {
  return body_->solver_id;
}
std::int64_t Conv2dPlan::workspace_bytes() const {
  return body_->workspace_bytes();
}
double Conv2dPlan::compile_seconds() const {
  return body_->compile_seconds();
}

Event Conv2dPlan::run(Queue& queue, const Conv2dRun& run) const {
  const Conv2dProblem& p = problem();
  const Conv2dElements elements = elements_of(p);
  const Array x{"x", run.x, elements.x, p.type}, w{"w", run.w, elements.w, p.type}, y{"y", run.y, elements.y, p.type},
      bias{"bias", run.bias, p.k, p.type};
  const devices::Device& device = *body_->device;
  if (p.pass == Pass::backward_data)
    check_arrays({w, y}, x, p.accumulate, device);
  else if (p.pass == Pass::backward_filter)
    check_arrays({x, y}, w, p.accumulate, device);
  else if (p.bias)
    check_arrays({x, w, bias}, y, p.accumulate, device);
  else
    check_arrays({x, w}, y, p.accumulate, device);
  check_workspace(run.workspace, workspace_bytes(), solver(), device,
                  {part_of(x), part_of(w), part_of(y), part_of(bias)});
  return body_->run(present(queue), run);
}

std::vector<Candidate> explain(const Context& context, const Conv2dProblem& problem, const SolverOptions& options) {
  check_pass(problem);
  return candidates_for(solvers::conv2d_solvers(), problem, problem.type, *context.impl(), options);
}

}  // namespace omniconv
