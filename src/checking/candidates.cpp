#include "checking/candidates.h"

namespace omniconv::checking {

Candidates candidates_of(const Context& context, const Problem& problem, const operations::AnyTask& task,
                         const SolverOptions& options) {
  const operations::Operation& operation = problem.operation();
  Candidates found;
  found.choice = options;
  found.are_several = options.solver == "all";
  if (found.are_several) found.choice.solver = "auto";
  found.all = choice::consider(operation, task, context.impl(), found.choice, found.are_several);
  if (!found.are_several) {
    if (!found.all.front().serves()) choice::choose(operation, task, problem, context.impl(), found.choice);  // throws
    found.all.erase(found.all.begin() + 1, found.all.end());
    return found;
  }
  std::erase_if(found.all, [&](const choice::Considered& one) {
    return !operations::is_for(one.solver->id(), context.impl()->kind()) ||
           (options.allow.empty() && one.solver->role() == operations::SolverRole::reference);
  });
  return found;
}

SolverOptions choice_of_versus(SolverOptions options, const std::string& versus) {
  options.solver = versus;
  options.allow = options.deny = {};
  options.tuning = {};
  return options;
}

std::optional<SolverOptions> choice_of_prepared(const Context& context, const Problem& problem,
                                                const operations::AnyTask& task, SolverOptions choice) {
  const operations::Operation& operation = problem.operation();
  const auto serves = [&] { return choice::consider(operation, task, context.impl(), choice).front().serves(); };
  choice.prepared = {};
  for (const ArraySpec& array : operation.arrays(problem)) {
    if (array.role != ArrayRole::in) continue;
    choice.prepared.push_back(array.name);
    if (!serves()) choice.prepared.pop_back();
  }
  return choice.prepared.empty() ? std::nullopt : std::optional(choice);
}

}  // namespace omniconv::checking
