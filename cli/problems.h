// The problems that a subcommand works on: named on the command line or in a file, and the variants asked for; and what
// is asked of the choice among their solvers.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/problem.h"
#include "omniconv/solver_options.h"

namespace omniconv::cli {

// What is asked of the choice among solvers; nothing where it is not given.
struct ChoiceInput {
  std::string solver = "auto";
  std::string units, workspace_limit, tuning;
  std::optional<double> max_error;
  bool relative_error = false, deterministic = false;
  std::vector<std::string> allow, deny, prepared;
};
// All but --solver, whose values differ. The ids that completion offers are of `operation`; empty: of any.
void add_choice(CLI::App& app, ChoiceInput& input, std::string_view operation = {});
// `words`, and the ids of the solvers of `operation`; empty: of any.
std::vector<std::string_view> with_solver_ids(std::vector<std::string_view> words, std::string_view operation = {});

struct ProblemInput {
  std::vector<std::string> texts, files, sweeps;
  // So many random problems instead, drawn from the seed; 0: none. Of these operations; of any where there are none.
  std::int64_t random = 0;
  std::vector<std::string> operations;
  // Variants; empty, or 0: as the problems say.
  std::vector<std::string> passes, types, layouts;
  std::int64_t batch = 0;
  ChoiceInput choice;
  std::uint64_t seed = 1;
};
// The words that begin problems.
std::vector<std::string_view> problem_words();
void add_problems(CLI::App& app, ProblemInput& input);
void add_random_problems(CLI::App& app, ProblemInput& input);

// With their variants, then sweeps. Throws when there are none, and for options that mean nothing for them.
std::vector<Problem> read_problems(const ProblemInput& input);

// Ids of other operations say nothing about a problem. Throws for unknown names.
SolverOptions solver_options(const ChoiceInput& input, std::string_view operation);

// Of a command that has one problem: throws for ids of other operations too.
SolverOptions solver_options_of_one(const ChoiceInput& input, std::string_view operation);

// Why a solver's id cannot be meant for a problem, being another operation's; empty for auto and all.
std::string foreign_solver(const std::string& solver, const Problem& problem);

// Throws for an id that no solver has, or that is of none of the problems' operations. auto and all are ids of none.
void require_solver_for(const std::string& solver, const std::vector<Problem>& problems);

}  // namespace omniconv::cli
