#include "train/steps.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/checked.h"
#include "train/rungs.h"

namespace omniconv::training {
namespace {

constexpr std::string_view filters = "w";

// The same with filters in a solver's own form, where one has it and then costs less.
std::optional<SolverOptions> prepared(const Context& context, const Problem& problem, const SolverOptions& options) {
  if (problem.operation_name() != "conv2d") return std::nullopt;
  SolverOptions made = options;
  made.prepared = {std::string(filters)};
  const auto cost = [](const Candidate& best) { return best.cost * best.counted; };
  const Candidate with = explain(context, problem, made).front();
  if (!with.applicable) return std::nullopt;
  const Candidate without = explain(context, problem, options).front();
  if (without.applicable && cost(without) <= cost(with)) return std::nullopt;
  return made;
}

}  // namespace

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
                         const std::map<std::string, std::string>& solvers, const RungOptions& rungs, bool prepares) {
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
  // Side by side where none is, with filters as they lie and prepared.
  struct Together {
    SolverOptions options;
    std::vector<Problem> problems = {};
    std::vector<Plan> made = {};
    std::size_t next = 0;
  };
  std::vector<Together> together = {{options}, {options}};
  together[1].options.prepared = {std::string(filters)};
  std::vector<std::optional<SolverOptions>> own;
  std::vector<bool> is_prepared;
  for (const StepOperation& operation : operations_) {
    own.push_back(named(operation.problem));
    const std::optional<SolverOptions> with =
        prepares ? prepared(context, operation.problem, own.back().value_or(options)) : std::nullopt;
    is_prepared.push_back(with.has_value());
    if (!own.back())
      together[with ? 1 : 0].problems.push_back(operation.problem);
    else if (with)
      own.back() = with;
  }
  for (Together& some : together) some.made = make_plans(context, some.problems, some.options);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    Together& some = together[is_prepared[i] ? 1 : 0];
    if (own[i])
      plans_.emplace_back(context, operations_[i].problem, *own[i]);
    else
      plans_.push_back(std::move(some.made[some.next++]));
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
  for (const NamedPlace& array : own.arrays) {
    const Operand as_it_lies = at(array.place, passing);
    arrays.push_back({array.name, is_prepared(operation, array.name)
                                      ? Operand{prepared_[operation], 0, plans_[operation].format(filters)}
                                      : as_it_lies});
  }
  plans_[operation].append(sequence, arrays, workspace, own.scalars);
}

void Steps::allocate_prepared(const std::function<Buffer(std::int64_t)>& allocate) {
  for (const Plan& plan : plans_) {
    const bool has_filters = plan.problem().operation_name() == "conv2d";
    const std::shared_ptr<const PreparedFormat> format = has_filters ? plan.format(filters) : nullptr;
    prepared_.push_back(format == nullptr ? Buffer() : allocate(format->bytes));
  }
}

bool Steps::has_prepared() const {
  return std::any_of(prepared_.begin(), prepared_.end(), [](const Buffer& one) { return static_cast<bool>(one); });
}

bool Steps::is_prepared(std::size_t operation, std::string_view array) const {
  return array == filters && operation < prepared_.size() && prepared_[operation];
}

void Steps::append_prepare(Sequence& sequence) const {
  for (std::size_t i = 0; i < operations_.size(); ++i)
    for (const NamedPlace& array : operations_[i].arrays)
      if (is_prepared(i, array.name)) plans_[i].append_prepare(sequence, filters, array.place.lasting, prepared_[i]);
}

void Steps::append(Sequence& sequence, const Buffer& passing, const Buffer& workspace) const {
  for (std::size_t i = 0; i < operations_.size(); ++i) append_one(sequence, i, passing, workspace);
}

}  // namespace omniconv::training
