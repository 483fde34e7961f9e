#include "checking/plans_ahead.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "checking/candidates.h"
#include "choice/plan_record.h"
#include "omniconv/error.h"
#include "vendor/vendor.h"

namespace omniconv::checking {
namespace {

// Programs are some hundred kilobytes each.
constexpr std::size_t most_plans = 256;

struct Wanted {
  const Problem& problem;
  operations::AnyTask task;
  SolverOptions choice;
  std::optional<MadePlan> made = {};
};

bool is_vendors(const std::string& solver, const Problem& problem) {
  const auto vendors = vendor::solvers_of(problem.operation().name());
  return std::any_of(vendors.begin(), vendors.end(), [&](const auto* one) { return one->id() == solver; });
}

void add_wanted(const Context& context, const Planned& planned, std::vector<Wanted>& wanted) try {
  if (!planned.options) return;
  const MeasureOptions& options = *planned.options;
  const operations::AnyTask task = planned.problem.operation().task(planned.problem, options.seed);
  const Candidates candidates = candidates_of(context, planned.problem, task, options.solver);
  for (const choice::Considered& one : candidates.all) {
    if (!one.serves() || one.solver->role() == operations::SolverRole::vendor) continue;
    wanted.push_back({planned.problem, task, candidates.choice});
    wanted.back().choice.solver = one.solver->id();
    if (!options.also_prepared) continue;
    if (auto prepared = choice_of_prepared(context, planned.problem, task, wanted.back().choice))
      wanted.push_back({planned.problem, task, std::move(*prepared)});
  }
  if (!options.versus.empty() && !is_vendors(options.versus, planned.problem))
    wanted.push_back({planned.problem, task, choice_of_versus(options.solver, options.versus)});
} catch (const Error&) {
}

void make(const Context& context, Wanted& one) try {
  one.made = make_plan(context, one.problem, one.task, one.choice);
} catch (...) {
}

}  // namespace

std::size_t PlansAhead::make(const Context& context, std::span<const Planned> problems,
                             const std::function<bool()>& stops) {
  made_.clear();
  std::vector<Wanted> wanted;
  std::size_t count = 0;
  while (count < problems.size() && wanted.size() < most_plans && !stops())
    add_wanted(context, problems[count++], wanted);
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < wanted.size() && !stops(); i = next++) checking::make(context, wanted[i]);
  };
  const std::size_t threads = std::min<std::size_t>(wanted.size(), std::max(1U, std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  most_at_once_ = std::max(most_at_once_, static_cast<int>(threads));
  for (Wanted& one : wanted)
    if (one.made) made_.emplace(choice::key_of(one.problem, one.choice), std::move(*one.made));
  return std::max<std::size_t>(count, 1);
}

std::optional<MadePlan> PlansAhead::take(const Problem& problem, const SolverOptions& options) {
  const auto found = made_.find(choice::key_of(problem, options));
  if (found == made_.end()) return {};
  std::optional<MadePlan> made = std::move(found->second);
  made_.erase(found);
  return made;
}

}  // namespace omniconv::checking
