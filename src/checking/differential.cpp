#include "checking/differential.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <future>
#include <new>

#include "checking/transfers.h"
#include "omniconv/error.h"

namespace omniconv::checking {
namespace {

// What refuses the problem, and lack of memory, are results.
std::vector<VerifyResult> checked(const Context& context, const Problem& problem, VerifyOptions options) {
  options.may_be_zero = true;
  VerifyResult result{.solver = options.solver.solver, .status = Status::refused};
  try {
    return verify(context, problem, options);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input && error.kind() != ErrorKind::out_of_memory) throw;
    if (error.kind() == ErrorKind::out_of_memory) result.status = Status::failed;
    result.reason = error.what();
  } catch (const std::bad_alloc&) {
    result.status = Status::failed;
    result.reason = "the machine's memory does not hold this problem's arrays";
  }
  return {result};
}

void count(const Problem& problem, const VerifyResult& result, SolverTally& tally) {
  tally.passed += result.status == Status::ok;
  tally.failed += result.status == Status::failed;
  tally.refused += result.status == Status::refused;
  const double ratio = result.status == Status::ok && result.bound > 0 ? result.error / result.bound : 0;
  if (ratio <= tally.largest_ratio) return;
  tally.largest_ratio = ratio;
  tally.worst_problem = to_text(problem);
}

// Some failures take a device down, and then all fails.
bool still_works(const Context& context) try {
  Host host(context);
  Transfers transfers(context, host);
  const std::byte value{1};
  return transfers.get(transfers.put(&value, 1, 0), 0, 1).front() == value;
} catch (const Error&) {
  return false;
}

void make_small(const Context& context, VerifyOptions options, const ShrinkBudget& budget, Failure& failure) {
  const std::string& solver = failure.result.solver;
  if (options.solver.tuning.empty()) {  // alone among all: an error of its own is a failure then
    options.solver.solver = "all";
    options.solver.allow = {solver};
  }
  bool works = still_works(context);
  const auto fails = [&](const Problem& problem) {
    if (!works) return false;
    for (const VerifyResult& result : checked(context, problem, options))
      if (result.solver == solver && result.status == Status::failed) {
        failure.small_result = result;
        works = still_works(context);
        return true;
      }
    return false;
  };
  if (!works) return;
  failure.fails_again = fails(failure.problem);
  if (failure.fails_again) failure.small = shrink(failure.problem, fails, budget);
}

}  // namespace

std::vector<Problem> random_problems(std::span<const operations::Operation* const> operations, std::int64_t count,
                                     std::uint64_t seed) {
  operations::Draws draws(seed);
  std::vector<Problem> problems;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t which = draws.below(static_cast<std::int64_t>(operations.size()));
    problems.push_back(operations[static_cast<std::size_t>(which)]->random_problem(draws));
  }
  return problems;
}

std::string Failure::to_text(std::string_view options) const {
  std::string text =
      fmt::format("  failed  {}: {}\n          {}\n", result.solver, omniconv::to_text(problem), result.reason);
  if (!fails_again) text += "          Alone it did not fail again: it depends on what runs beside it, or on chance.\n";
  if (small && !(small->problem == problem))
    text += fmt::format("  small   {}\n          {} (after {} tries)\n", omniconv::to_text(small->problem),
                        small_result.reason, small->tried);
  return text + fmt::format("  again   omniconv verify \"{}\" --solver {} {}\n", omniconv::to_text(smallest()),
                            result.solver, options);
}

SolverTally& DifferentialTally::of(const std::string& solver) {
  const auto known =
      std::find_if(solvers.begin(), solvers.end(), [&](const SolverTally& one) { return one.solver == solver; });
  return known != solvers.end() ? *known : solvers.emplace_back(SolverTally{.solver = solver});
}

DifferentialTally verify_each(const Context& context, std::span<const Problem> problems,
                              const DifferentialOptions& options, const DifferentialWatch& watch) {
  DifferentialTally tally;
  std::int64_t failures = 0;
  const auto take = [&](const Problem& problem, const std::vector<VerifyResult>& results) {
    ++tally.problems;
    tally.unserved_problems += std::all_of(results.begin(), results.end(),
                                           [](const VerifyResult& one) { return one.status == Status::refused; });
    for (const VerifyResult& result : results) {
      SolverTally& solver = tally.of(result.solver);
      count(problem, result, solver);
      if (result.status != Status::failed) continue;
      Failure failure{problem, result};
      if (solver.failed <= options.most_shrunk) make_small(context, options.verify(problem), options.budget, failure);
      watch.failed(failure);
      tally.is_given_up = ++failures >= options.most_failures || !still_works(context);
    }
  };
  // Results are taken in the order of the problems, so that a run says the same whatever its threads.
  std::deque<std::future<std::vector<VerifyResult>>> under_way;
  const auto window = static_cast<std::size_t>(std::max(options.threads, 1));
  for (std::size_t done = 0; done < problems.size() && !tally.is_given_up; ++done) {
    while (under_way.size() < window && done + under_way.size() < problems.size())
      under_way.push_back(std::async(std::launch::async, [&, at = done + under_way.size()] {
        return checked(context, problems[at], options.verify(problems[at]));
      }));
    watch.waits(problems.subspan(done, under_way.size()), tally);
    const std::vector<VerifyResult> results = under_way.front().get();
    under_way.pop_front();
    take(problems[done], results);
  }
  return tally;
}

}  // namespace omniconv::checking
