#include "checking/verify.h"

#include "checking/checker.h"
#include "checking/host.h"
#include "checking/own_failure.h"
#include "choice/choose.h"
#include "omniconv/error.h"

namespace omniconv::checking {
namespace {

using operations::AnyTask;
using operations::Operation;

void verify_task(const Context& context, const Problem& problem, const AnyTask& task, const VerifyOptions& options,
                 const std::function<void(const VerifyResult&)>& report) {
  const Operation& operation = problem.operation();
  SolverOptions choice = options.solver;
  const bool all = choice.solver == "all";
  if (all) choice.solver = "auto";
  std::vector<choice::Considered> candidates = choice::consider(operation, task, context.impl(), choice, all);
  if (!all && !candidates.front().serves()) choice::choose(operation, task, problem, context.impl(), choice);  // throws
  if (!all) candidates.erase(candidates.begin() + 1, candidates.end());
  const std::shared_ptr<Host> host = options.host ? options.host : std::make_shared<Host>(context);
  Checker checker(context, problem, task, options, *host);
  for (const choice::Considered& candidate : candidates) {
    const std::string id(candidate.solver->id());
    if (!candidate.serves()) {
      if (!all || operations::is_for(id, context.impl()->kind()))
        report({.solver = id, .status = Status::refused, .reason = candidate.reason});
      continue;
    }
    choice.solver = id;
    report(made_or_failed(VerifyResult{.solver = id}, all,
                          [&] { return checker.check(make_plan(context, problem, task, choice)); }));
  }
}

}  // namespace

std::string_view name(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::refused: return "refused";
    case Status::failed: return "failed";
  }
  return "?";
}

void verify(const Context& context, const Problem& problem, const VerifyOptions& options,
            const std::function<void(const VerifyResult&)>& report) {
  validate(problem);
  verify_task(context, problem, problem.operation().task(problem, options.seed), options, report);
}

std::vector<VerifyResult> verify(const Context& context, const Problem& problem, const VerifyOptions& options) {
  std::vector<VerifyResult> results;
  verify(context, problem, options, [&](const VerifyResult& result) { results.push_back(result); });
  return results;
}

std::vector<VerifyResult> verify(const Context& context, const Problem& problem, const AnyTask& task,
                                 const VerifyOptions& options) {
  std::vector<VerifyResult> results;
  verify_task(context, problem, task, options, [&](const VerifyResult& result) { results.push_back(result); });
  return results;
}

}  // namespace omniconv::checking
