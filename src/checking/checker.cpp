#include "checking/checker.h"

#include <fmt/format.h>

#include <chrono>

#include "choice/plan_record.h"

namespace omniconv::checking {
namespace {

std::string unit_of(const operations::ErrorBound& bound) {
  return bound.exact ? "stored values" : fmt::format("2^-{} * {}", bound.f64 ? 52 : 23, bound.norm);
}

}  // namespace

MadePlan make_plan(const Context& context, const Problem& problem, const operations::AnyTask& task,
                   const SolverOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Plan plan(choice::make_record(context, problem, task, options));
  return {std::move(plan), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

// Made when the first plan asks for them: a problem that nothing serves has none.
std::vector<std::unique_ptr<Trial>>& Checker::trials() {
  if (!trials_.empty()) return trials_;
  const operations::Operation& operation = problem_.operation();
  std::vector<std::unique_ptr<Trial>> made;  // all or none, where memory does not suffice
  for (const operations::DataKind kind : operation.data_kinds(task_))
    made.push_back(std::make_unique<Trial>(operation, task_, operation.arrays(problem_), kind, options_, host_));
  return trials_ = std::move(made);
}

VerifyResult Checker::check(const MadePlan& made) {
  const Plan& plan = made.plan;
  VerifyResult result{.solver = plan.solver()};
  result.plan_seconds = made.seconds;
  result.compile_seconds = plan.compile_seconds();
  result.unit = unit_of(plan.record().bound);
  result.tuning = plan.record().tuning.to_text();
  for (const std::unique_ptr<Trial>& trial : trials()) {
    trial->check(context_, plan, result);
    if (result.status == Status::failed) return result;
    if (trial->is_mostly_zero()) {
      result.status = Status::failed;
      result.reason = "most of what was expected is zero: the comparison means little; choose another --seed";
      return result;
    }
  }
  return result;
}

}  // namespace omniconv::checking
