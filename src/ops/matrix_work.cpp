#include "ops/matrix_work.h"

#include <cmath>

#include "core/convert.h"
#include "solvers/conv2d/conv2d.h"
#include "solvers/gemm/gemm.h"

namespace omniconv {
namespace {

using reference::DoubleSum;

template <typename Solver, typename Task>
solvers::MatrixBound bound_of(std::span<const Solver* const> all, const std::string& id, const Task& task,
                              const devices::Device& device) {
  for (const Solver* solver : all)
    if (solver->id() == id) return solver->bound(task, device);
  return {};
}

template <typename Solver>
std::vector<std::string> names_of(std::span<const Solver* const> all) {
  std::vector<std::string> names;
  for (const Solver* solver : all) names.emplace_back(solver->id());
  return names;
}

// What both plans have.
template <typename Plan>
class PlanOf : public MatrixPlan {
 public:
  explicit PlanOf(Plan the_plan) : plan(std::move(the_plan)) {}
  std::string solver() const override { return plan.solver(); }
  std::int64_t workspace_bytes() const override { return plan.workspace_bytes(); }
  double compile_seconds() const override { return plan.compile_seconds(); }

  Plan plan;
};

class PlanOfGemm final : public PlanOf<GemmPlan> {
 public:
  using PlanOf::PlanOf;
  Event run(Queue& queue, const std::vector<Operand>& inputs, const Operand& output,
            const Buffer& workspace) const override {
    return plan.run(queue, {.a = inputs[0], .b = inputs[1], .c = output, .workspace = workspace});
  }
};

class GemmWork final : public MatrixWork {
 public:
  explicit GemmWork(const GemmProblem& problem) : problem_(problem), task_(solvers::task_for(problem)) {
    type = problem.type;
    inputs = {{"a", problem.batch * problem.m * problem.k}, {"b", problem.batch * problem.k * problem.n}};
    output = {"c", problem.batch * problem.m * problem.n};
    longest_sum = static_cast<double>(problem.k);
    multiply_adds = static_cast<double>(output.elements) * static_cast<double>(problem.k);
  }

  std::string text() const override { return to_text(problem_); }
  std::unique_ptr<MatrixPlan> plan(const Context& context, const SolverOptions& options) const override {
    return std::make_unique<PlanOfGemm>(GemmPlan(context, problem_, options));
  }
  std::vector<Candidate> explain(const Context& context, const SolverOptions& options) const override {
    return omniconv::explain(context, problem_, options);
  }
  std::vector<std::string> solvers() const override { return names_of(solvers::gemm_solvers()); }
  solvers::MatrixBound bound(const std::string& solver, const devices::Device& device) const override {
    return bound_of(solvers::gemm_solvers(), solver, task_, device);
  }
  DoubleSum expected(const std::vector<const std::byte*>& data, std::int64_t index) const override {
    const std::int64_t size = size_of(type), j = index % problem_.n, i = index / problem_.n % problem_.m,
                       batch = index / (problem_.m * problem_.n);
    return reference::gemm_element(problem_, data[0] + batch * task_.batch_a * size, task_.lda,
                                   data[1] + batch * task_.batch_b * size, task_.ldb, i, j);
  }

 private:
  GemmProblem problem_;
  solvers::GemmTask task_;
};

class PlanOfConv2d final : public PlanOf<Conv2dPlan> {
 public:
  using PlanOf::PlanOf;
  Event run(Queue& queue, const std::vector<Operand>& inputs, const Operand& output,
            const Buffer& workspace) const override {
    Conv2dRun run{.workspace = workspace};
    switch (plan.problem().pass) {
      case Pass::forward:
        run.x = inputs[0], run.w = inputs[1], run.y = output;
        if (plan.problem().bias) run.bias = inputs[2];
        break;
      case Pass::backward_data: run.w = inputs[0], run.y = inputs[1], run.x = output; break;
      case Pass::backward_filter: run.x = inputs[0], run.y = inputs[1], run.w = output; break;
    }
    return plan.run(queue, run);
  }
};

class Conv2dWork final : public MatrixWork {
 public:
  explicit Conv2dWork(const Conv2dProblem& problem) : problem_(problem), shape_(problem) {
    const Conv2dElements elements = elements_of(problem);
    const MatrixArray x{"x", elements.x}, w{"w", elements.w}, y{"y", elements.y};
    type = problem.type;
    accumulates = problem.accumulate;
    has_relu = problem.relu;
    switch (problem.pass) {
      case Pass::forward:
        inputs = {x, w}, output = y;
        if (problem.bias) inputs.push_back({"bias", problem.k});
        break;
      case Pass::backward_data: inputs = {w, y}, output = x; break;
      case Pass::backward_filter: inputs = {x, y}, output = w; break;
    }
    longest_sum = solvers::longest_sum(problem);
    multiply_adds = solvers::multiply_adds(problem);
  }

  std::string text() const override { return to_text(problem_); }
  std::unique_ptr<MatrixPlan> plan(const Context& context, const SolverOptions& options) const override {
    return std::make_unique<PlanOfConv2d>(Conv2dPlan(context, problem_, options));
  }
  std::vector<Candidate> explain(const Context& context, const SolverOptions& options) const override {
    return omniconv::explain(context, problem_, options);
  }
  std::vector<std::string> solvers() const override { return names_of(solvers::conv2d_solvers()); }
  solvers::MatrixBound bound(const std::string& solver, const devices::Device& device) const override {
    return bound_of(solvers::conv2d_solvers(), solver, problem_, device);
  }
  DoubleSum expected(const std::vector<const std::byte*>& data, std::int64_t index) const override {
    reference::Conv2dData of;
    switch (problem_.pass) {
      case Pass::forward: of.x = data[0], of.w = data[1]; break;
      case Pass::backward_data: of.w = data[0], of.y = data[1]; break;
      case Pass::backward_filter: of.x = data[0], of.y = data[1]; break;
    }
    DoubleSum sum = reference::conv2d_element(problem_, shape_, of, index);
    if (problem_.bias) {
      const std::int64_t k = shape_.nhwc ? index % shape_.k : index / (shape_.p * shape_.q) % shape_.k;
      const double bias = load_element(type, data[2] + k * size_of(type));
      sum.value += bias;
      sum.magnitude += std::fabs(bias);
    }
    return sum;
  }

 private:
  Conv2dProblem problem_;
  Conv2dShape shape_;
};

}  // namespace

std::unique_ptr<MatrixWork> make_work(const GemmProblem& problem) {
  return std::make_unique<GemmWork>(problem);
}

std::unique_ptr<MatrixWork> make_work(const Conv2dProblem& problem) {
  return std::make_unique<Conv2dWork>(problem);
}

double array_bytes(const MatrixWork& work) {
  double elements = static_cast<double>(work.output.elements) * (work.accumulates ? 2 : 1);
  for (const MatrixArray& input : work.inputs) elements += static_cast<double>(input.elements);
  return elements * static_cast<double>(size_of(work.type));
}

}  // namespace omniconv
