#include "train/steps.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/checked.h"
#include "train/rungs.h"

namespace omniconv::training {

Place Steps::passing(std::int64_t bytes) {
  constexpr std::int64_t alignment = 256;
  arrays_.push_back({.bytes = round_up(bytes, alignment)});
  return {.passing = arrays_.size() - 1};
}

void Steps::keep(const Place& place) {
  if (place.passing != Place::none) arrays_[place.passing].last = Place::none;
}

std::int64_t Steps::lay_out() {
  for (std::size_t i = 0; i < operations_.size(); ++i)
    for (const NamedPlace& array : operations_[i].arrays) {
      if (array.place.passing == Place::none) continue;
      Array& own = arrays_[array.place.passing];
      own.first = std::min(own.first, i), own.last = std::max(own.last, i);
    }
  // The largest first, each as low as those that live with it let it be.
  std::vector<std::size_t> order(arrays_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return arrays_[a].bytes > arrays_[b].bytes; });
  std::vector<std::size_t> laid;  // by their offsets
  std::int64_t all = 0;
  for (const std::size_t index : order) {
    Array& own = arrays_[index];
    if (own.first == Place::none) continue;  // no operation has it
    own.offset = 0;
    for (const std::size_t other : laid) {
      const Array& there = arrays_[other];
      if (there.last < own.first || own.last < there.first) continue;
      if (own.offset + own.bytes <= there.offset) break;
      own.offset = std::max(own.offset, there.offset + there.bytes);
    }
    all = std::max(all, checked_add(own.offset, own.bytes, "the memory of a step's arrays"));
    const auto behind =
        std::upper_bound(laid.begin(), laid.end(), own.offset,
                         [&](std::int64_t offset, std::size_t at) { return offset < arrays_[at].offset; });
    laid.insert(behind, index);
  }
  return all;
}

std::int64_t Steps::plan(const Context& context, const SolverOptions& options,
                         const std::map<std::string, std::string>& solvers, const RungOptions& rungs) {
  // Where a solver is named, by whom it may be.
  const auto named = [&](const Problem& problem) -> std::optional<SolverOptions> {
    SolverOptions own = options;
    auto found = solvers.find(to_text(problem));
    if (found == solvers.end()) found = solvers.find(std::string(problem.operation_name()));
    if (found != solvers.end()) {
      own.allow = {found->second};
      return own;
    }
    const RungSolver of_rung = solver_on(rungs, problem.operation_name());
    if (of_rung.solver.empty()) return std::nullopt;
    own.solver = of_rung.solver, own.tuning = of_rung.tuning;
    return own;
  };
  // Side by side where none is.
  std::vector<Problem> problems;
  for (const StepOperation& operation : operations_)
    if (!named(operation.problem)) problems.push_back(operation.problem);
  std::vector<Plan> made = make_plans(context, problems, options);
  std::size_t next = 0;
  for (const StepOperation& operation : operations_) {
    if (const std::optional<SolverOptions> own = named(operation.problem))
      plans_.emplace_back(context, operation.problem, *own);
    else
      plans_.push_back(std::move(made[next++]));
  }
  std::int64_t most = 0;
  for (const Plan& plan : plans_) most = std::max(most, plan.workspace_bytes());
  return most;
}

Operand Steps::at(const Place& place, const Buffer& passing) const {
  return place.passing == Place::none ? place.lasting : Operand{passing, arrays_[place.passing].offset};
}

void Steps::append_one(Sequence& sequence, std::size_t operation, const Buffer& passing,
                       const Buffer& workspace) const {
  const StepOperation& own = operations_[operation];
  std::vector<NamedOperand> arrays;
  for (const NamedPlace& array : own.arrays) arrays.push_back({array.name, at(array.place, passing)});
  plans_[operation].append(sequence, arrays, workspace, own.scalars);
}

void Steps::append(Sequence& sequence, const Buffer& passing, const Buffer& workspace) const {
  for (std::size_t i = 0; i < operations_.size(); ++i) append_one(sequence, i, passing, workspace);
}

}  // namespace omniconv::training
