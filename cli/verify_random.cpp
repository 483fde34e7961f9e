#include "verify_random.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "checking/differential.h"
#include "progress.h"

namespace omniconv::cli {
namespace {

using checking::DifferentialTally;
using checking::Failure;
using checking::SolverTally;

// What makes `verify` do the same to one problem, as words of a shell.
std::string same_options(const Checks& checks, const std::string& device) {
  const ChoiceInput& choice = checks.input.choice;
  std::string options = fmt::format("--device {} --seed {}", device, checks.input.seed);
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) options += fmt::format(" {} {}", option, value);
  };
  add("--units", choice.units);
  if (choice.max_error) options += fmt::format(" --max-error {}", *choice.max_error);
  if (choice.relative_error) options += " --relative-error";
  add("--workspace-limit", choice.workspace_limit);
  add("--tuning", choice.tuning.empty() ? "" : '"' + choice.tuning + '"');
  if (choice.deterministic) options += " --deterministic";
  for (const std::string& array : choice.prepared) add("--prepared", array);
  if (checks.sampled) options += fmt::format(" --sampled --samples {}", checks.samples);
  if (checks.strip_rows > 0) options += fmt::format(" --strip-rows {}", checks.strip_rows);
  return options;
}

Json to_json(const Failure& failure) {
  Json json = result_json(failure.problem, failure.result);
  if (failure.small || !failure.fails_again) json["fails_again"] = failure.fails_again;
  if (failure.small)
    json["small"] = {{"problem", to_text(failure.small->problem)},
                     {"reason", failure.small_result.reason},
                     {"tried", failure.small->tried}};
  return json;
}

Json to_json(const DifferentialTally& tally, std::uint64_t seed) {
  Json json = {{"seed", seed},
               {"problems", tally.problems},
               {"unserved", tally.unserved_problems},
               {"given_up", tally.is_given_up},
               {"solvers", Json::array()}};
  for (const SolverTally& one : tally.solvers)
    json["solvers"].push_back({{"solver", one.solver},
                               {"passed", one.passed},
                               {"failed", one.failed},
                               {"refused", one.refused},
                               {"largest_ratio", one.largest_ratio},
                               {"problem", one.worst_problem}});
  return json;
}

void print_tally(const DifferentialTally& tally, std::uint64_t seed) {
  std::vector<std::vector<std::string>> rows = {{"  solver", "passed", "failed", "refused", "error/bound", "of"}};
  for (const SolverTally& one : tally.solvers)
    rows.push_back({"  " + one.solver, std::to_string(one.passed), std::to_string(one.failed),
                    std::to_string(one.refused),
                    one.largest_ratio == 0 ? "-" : fmt::format("{:.3f}", one.largest_ratio), one.worst_problem});
  print_table(rows);
  const auto worst =
      std::max_element(tally.solvers.begin(), tally.solvers.end(),
                       [](const SolverTally& a, const SolverTally& b) { return a.largest_ratio < b.largest_ratio; });
  if (worst != tally.solvers.end() && worst->largest_ratio > 0)
    fmt::print("largest error: {:.3f} of its bound, by {} of {}\n", worst->largest_ratio, worst->solver,
               worst->worst_problem);
  if (tally.is_given_up)
    fmt::print("given up: too many failures, or the device is lost; the other problems were not checked\n");
  fmt::print("{} problems of seed {}, of which no solver served {}\n", tally.problems, seed, tally.unserved_problems);
}

}  // namespace

int run_random(const Checks& checks, const std::vector<Problem>& problems, const Context& context, Json& json,
               const Keep& keep) {
  const bool print = prints(checks.common);
  const std::string options = same_options(checks, context.device().id);
  ProgressBar bar(read_environment().progress && !checks.common.quiet, 1);
  const auto waits = [&](std::span<const Problem> under_way, const DifferentialTally& so_far) {
    stop_if_interrupted();
    bar.update(so_far.problems, static_cast<std::int64_t>(problems.size()), "problems");
    json["random"] = to_json(so_far, checks.input.seed);
    for (const Problem& problem : under_way) json["random"]["under_way"].push_back(to_text(problem));
    keep();  // one of these may end the process
  };
  const auto failed = [&](const Failure& failure) {
    bar.clear();
    json["results"].push_back(to_json(failure));
    if (print) fmt::print("{}", failure.to_text(options));
    std::fflush(stdout);
  };
  const int threads =
      checks.common.threads > 0 ? checks.common.threads : static_cast<int>(std::thread::hardware_concurrency());
  const DifferentialTally tally = checking::verify_each(
      context, problems,
      {.verify = [&](const Problem& problem) { return verify_options(checks, problem); }, .threads = threads},
      {waits, failed});
  bar.clear();
  json["random"] = to_json(tally, checks.input.seed);
  Tally all;
  for (const SolverTally& one : tally.solvers) {
    all.passed += static_cast<int>(one.passed);
    all.failed += static_cast<int>(one.failed);
    all.refused += static_cast<int>(one.refused);
  }
  if (print) {
    print_tally(tally, checks.input.seed);
    fmt::print("{}\n", all.text());
  }
  return all.exit_status();
}

}  // namespace omniconv::cli
