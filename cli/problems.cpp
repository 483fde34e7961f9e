#include "problems.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include "checking/differential.h"
#include "checking/solver_ids.h"
#include "common.h"
#include "core/problem_rules.h"
#include "core/suggest.h"
#include "omniconv/error.h"
#include "operations/operation.h"
#include "operations/tuning.h"
#include "sweep.h"

namespace omniconv::cli {
namespace {

using operations::Operation;

constexpr std::size_t largest_problem_file = std::size_t{16} << 20;
constexpr std::array<std::string_view, 2> unit_words = {"any", "fma"};

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  char block[65536];
  while (file && text.size() <= largest_problem_file) {
    file.read(block, sizeof block);
    text.append(block, static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof() && text.size() <= largest_problem_file)
    throw bad_input(fmt::format("{}: the problem list cannot be read: name a readable text file", path));
  if (text.size() > largest_problem_file)
    throw bad_input(fmt::format("{}: a problem list has at most {} bytes", path, largest_problem_file));
  return text;
}

// Each word of a list option, once.
void require_once(const char* option, const std::vector<std::string>& words) {
  for (auto word = words.begin(); word != words.end(); ++word)
    if (std::find(words.begin(), word, *word) != word)
      throw bad_input(fmt::format("{}: '{}' stands twice: once is enough", option, *word));
}

// A variant by words: the option that asks for it, and what the words say.
struct WordVariant {
  const char *option, *what, *of;
  const std::vector<std::string>& words;
};

std::vector<WordVariant> word_variants(const ProblemInput& input) {
  return {{"--pass", "pass", "forward and backward passes", input.passes},
          {"--type", "type", "types of networks", input.types},
          {"--layout", "layout", "layouts", input.layouts}};
}

void add_new(std::vector<std::string_view>& words, const std::vector<std::string_view>& more) {
  for (const std::string_view word : more)
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

// Those that any operation has for `what`, and all.
std::vector<std::string_view> words_of_any(std::string_view what) {
  std::vector<std::string_view> words;
  for (const Operation* const operation : operations::operations()) add_new(words, operation->words(what));
  words.push_back("all");
  return words;
}

// Variants that no problem of the list has are refused, and words that none of their operations knows.
void check_variant(const WordVariant& variant, const std::vector<Problem>& problems) {
  if (variant.words.empty()) return;
  require_once(variant.option, variant.words);
  std::vector<std::string_view> known;
  for (const Problem& problem : problems) add_new(known, problem.operation().words(variant.what));
  if (known.empty())
    throw bad_input(fmt::format("{} varies problems that have {}, and none of these has: leave it out", variant.option,
                                variant.of));
  known.push_back("all");
  for (const std::string& word : variant.words) {
    if (word == "all" && variant.words.size() > 1)
      throw bad_input(fmt::format("{}: 'all' stands beside others: give it alone", variant.option));
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw bad_input(fmt::format("unknown {} {}: {}", variant.option, shown(word), suggest(word, known)));
  }
}

// The problems, each with every word in turn that its operation has; those that have no such words as they are.
std::vector<Problem> varied(const std::vector<Problem>& problems, const WordVariant& variant) {
  if (variant.words.empty()) return problems;
  std::vector<Problem> family;
  for (const Problem& problem : problems) {
    const Operation& operation = problem.operation();
    const std::vector<std::string_view> own = operation.words(variant.what);
    if (own.empty()) family.push_back(problem);
    const std::size_t before = family.size();
    for (const std::string_view word : own) {
      if (variant.words.front() != "all" &&
          std::find(variant.words.begin(), variant.words.end(), word) == variant.words.end())
        continue;
      family.push_back(operation.with_word(problem, variant.what, word));
      validate(family.back());
    }
    if (!own.empty() && family.size() == before)
      throw bad_input(fmt::format("{} {}: {} has none of them, but {}", variant.option, fmt::join(variant.words, ","),
                                  to_text(problem), fmt::join(own, ", ")));
  }
  return family;
}

std::vector<Problem> with_batch(std::vector<Problem> problems, std::int64_t batch) {
  if (batch == 0) return problems;
  const auto has_batch = [](const Problem& problem) {
    const std::vector<std::string_view> letters = problem.operation().letters();
    return !problem.operation().words("pass").empty() &&
           std::find(letters.begin(), letters.end(), "n") != letters.end();
  };
  if (std::none_of(problems.begin(), problems.end(), has_batch))
    throw bad_input("--batch varies problems of batches of images, and none of these is one: leave it out");
  for (Problem& problem : problems)
    if (has_batch(problem)) {
      problem = problem.operation().with_letters(problem, "n", batch);
      validate(problem);
    }
  return problems;
}

void add_list(CLI::App& app, const char* name, std::vector<std::string>& words, const char* meaning, const char* type,
              const std::vector<std::string_view>& known) {
  app.add_option(name, words, meaning)
      ->type_name(type)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(not_empty())
      ->check(known_words(known));
}

// The arrays of any operation.
std::vector<std::string> array_names() {
  std::vector<std::string> names;
  for (const Operation* const operation : operations::operations())
    for (const operations::ArrayHelp& array : operation->array_help())
      if (std::find(names.begin(), names.end(), array.name) == names.end()) names.push_back(array.name);
  return names;
}

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  for (const Operation* const operation : operations::operations()) names.push_back(operation->name());
  return names;
}

// Of the operations that --operation names, or else that of the solver's id, or else all.
std::vector<Problem> drawn_problems(const ProblemInput& input) {
  if (!input.texts.empty() || !input.files.empty())
    throw bad_input(fmt::format("--random draws its own problems, and {} is given too: leave one of them out",
                                shown(input.texts.empty() ? input.files.front() : input.texts.front())));
  require_once("--operation", input.operations);
  const std::vector<std::string_view> names = operation_names();
  for (const std::string& name : input.operations)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw bad_input(fmt::format("unknown --operation {}: {}", shown(name), suggest(name, names)));
  const std::string_view of_solver = checking::operation_of_id(input.choice.solver);
  const bool names_solver = std::find(names.begin(), names.end(), of_solver) != names.end();
  std::vector<const Operation*> wanted;
  for (const Operation* const one : operations::operations())
    if (!input.operations.empty()
            ? std::find(input.operations.begin(), input.operations.end(), one->name()) != input.operations.end()
            : !names_solver || one->name() == of_solver)
      wanted.push_back(one);
  return checking::random_problems(wanted, input.random, input.seed);
}

}  // namespace

std::vector<std::string_view> problem_words() {
  std::vector<std::string_view> words;
  for (const Operation* const operation : operations::operations())
    if (!operation->word().empty()) words.push_back(operation->word());
  return words;
}

std::vector<std::string_view> with_solver_ids(std::vector<std::string_view> words, std::string_view operation) {
  for (const std::string_view id : checking::solver_ids())
    if (operation.empty() || checking::operation_of_id(id) == operation) words.push_back(id);
  return words;
}

void add_choice(CLI::App& app, ChoiceInput& input, std::string_view operation) {
  app.add_option("--units", input.units, "fma: fused multiply-adds alone; any: whatever keeps to the bound (default)")
      ->type_name("UNITS")
      ->check(not_empty())
      ->check(known_words({unit_words.begin(), unit_words.end()}));
  app.add_option_function<double>(
         "--max-error", [&input](double value) { input.max_error = value; },
         "the largest amplification of an error bound; 1024 by default")
      ->type_name("A")
      ->check(finite_number(0));
  app.add_flag("--relative-error", input.relative_error,
               "only solvers whose bound needs no term by the largest numbers of all");
  app.add_option("--workspace-limit", input.workspace_limit, "bytes that a solver may take beside the arrays, as 512M")
      ->type_name("BYTES")
      ->check(not_empty());
  app.add_flag("--deterministic", input.deterministic, "only solvers that give the same bits in every run");
  add_list(app, "--allow", input.allow, "only these solvers: ids, or what they begin with, as conv2d/direct (a list)",
           "ID", with_solver_ids({}, operation));
  add_list(app, "--deny", input.deny, "none of these solvers (a list)", "ID", with_solver_ids({}, operation));
  app.add_option("--tuning", input.tuning, "of the solver that --solver names, as \"tile_m=128 tile_n=64\"")
      ->type_name("TUNING")
      ->check(not_empty());
}

void add_problems(CLI::App& app, ProblemInput& input) {
  app.add_option("PROBLEM", input.texts, "problems in the notation of docs/notation.md, each quoted as one word")
      ->check(known_words(problem_words()));
  app.add_option("--problems", input.files, "a file of problems, one a line")->type_name("FILE");
  add_list(app, "--pass", input.passes,
           "fwd, bwd_data, bwd_filter, bwd, inference (a list) or all: instead of the pass; convolutions backward lose "
           "bias and relu",
           "PASS", words_of_any("pass"));
  add_list(app, "--type", input.types, "f64, f32, f16, bf16, tf32 (a list): instead of that of problems of networks",
           "TYPE", words_of_any("type"));
  add_list(app, "--layout", input.layouts, "nchw, nhwc (a list): instead of that of problems of networks", "LAYOUT",
           words_of_any("layout"));
  app.add_option("--batch", input.batch, "instead of the n of problems with passes")
      ->type_name("N")
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()));
  app.add_option("--sweep", input.sweeps,
                 "LETTERS=FIRST:LAST:+STEP or :xFACTOR: each problem with each value of these extents")
      ->type_name("SWEEP")
      ->allow_extra_args(false);
  app.add_option("--solver", input.choice.solver, "auto, all, or a solver's id")
      ->capture_default_str()
      ->check(known_words(with_solver_ids({"auto", "all"})));
  add_choice(app, input.choice);
  const std::vector<std::string> arrays = array_names();
  add_list(app, "--prepared", input.choice.prepared,
           "arrays that are in the solver's own form before it runs, as packed filters, w (a list)", "ARRAY",
           {arrays.begin(), arrays.end()});
  app.add_option("--seed", input.seed, "of the random data")
      ->capture_default_str()
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()));
}

void add_random_problems(CLI::App& app, ProblemInput& input) {
  CLI::Option* const random =
      app.add_option("--random", input.random,
                     "N problems of every operation, drawn from the seed, by every solver; what fails is made small")
          ->type_name("N")
          ->check(whole_number(1, 1'000'000));
  add_list(app, "--operation", input.operations, "of these operations alone (a list)", "OPERATION", operation_names());
  app.get_option("--operation")->needs(random);
}

std::vector<Problem> read_problems(const ProblemInput& input) {
  std::vector<Problem> problems;
  if (input.random > 0) problems = drawn_problems(input);
  for (const std::string& text : input.texts) problems.push_back(parse_problem(text));
  for (const std::string& path : input.files) {
    const std::vector<Problem> more = parse_problem_list(read_text(path), path);
    problems.insert(problems.end(), more.begin(), more.end());
  }
  if (problems.empty()) throw bad_input("no problem given: name one in quotes, or a list with --problems FILE");
  // What nothing could make of a single problem is refused here; of a list, in its place.
  if (problems.size() == 1 && input.sweeps.empty() && input.passes.empty())
    problems.front().operation().task(problems.front(), input.seed);
  for (const WordVariant& variant : word_variants(input)) check_variant(variant, problems);
  if (input.choice.solver != "auto" && input.choice.solver != "all") require_solver_for(input.choice.solver, problems);
  solver_options(input.choice, problems.front().operation_name());  // what it refuses is no problem's fault
  for (const WordVariant& variant : word_variants(input)) problems = varied(problems, variant);
  return swept(with_batch(std::move(problems), input.batch), input.sweeps);
}

SolverOptions solver_options(const ChoiceInput& input, std::string_view operation) {
  for (const std::vector<std::string>* patterns : {&input.allow, &input.deny})
    for (const std::string& pattern : *patterns) checking::require_any_solver_like(pattern);
  SolverOptions options{
      .solver = input.solver, .relative_error = input.relative_error, .deterministic = input.deterministic};
  if (!input.units.empty()) {
    if (std::find(unit_words.begin(), unit_words.end(), input.units) == unit_words.end())
      throw bad_input(fmt::format("unknown --units {}: {}", shown(input.units), suggest(input.units, unit_words)));
    options.units = input.units == "fma" ? Units::fma : Units::any;
  }
  if (input.max_error) options.max_error = *input.max_error;
  if (!input.workspace_limit.empty())
    options.max_workspace_bytes =
        input.workspace_limit == "0" ? 0 : parse_bytes("--workspace-limit", input.workspace_limit);
  const auto of_this = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> own;
    std::copy_if(patterns.begin(), patterns.end(), std::back_inserter(own),
                 [&](const std::string& pattern) { return checking::operation_of_id(pattern) == operation; });
    return own;
  };
  options.allow = of_this(input.allow);
  options.deny = of_this(input.deny);
  if (!input.tuning.empty() && operations::Tuning::parse(input.tuning).is_empty())
    throw bad_input("--tuning is blank: write NAME=INTEGER, as in tile_m=128");
  if (!input.tuning.empty() && (input.solver == "auto" || input.solver == "all"))
    throw bad_input(fmt::format("--tuning {} is of one solver: name it with --solver", shown(input.tuning)));
  options.tuning = operations::Tuning::parse(input.tuning).to_text();
  options.prepared = input.prepared;
  for (const std::string& array : input.prepared)
    if (std::none_of(operations::operations().begin(), operations::operations().end(), [&](const Operation* one) {
          const auto arrays = one->array_help();
          return std::any_of(arrays.begin(), arrays.end(), [&](const auto& known) { return known.name == array; });
        }))
      throw bad_input(fmt::format("--prepared {}: no operation has such an array", shown(array)));
  require_once("--prepared", input.prepared);
  return options;
}

SolverOptions solver_options_of_one(const ChoiceInput& input, std::string_view operation) {
  SolverOptions options = solver_options(input, operation);
  for (const auto& [option, patterns] : {std::pair("--allow", &input.allow), std::pair("--deny", &input.deny)})
    for (const std::string& pattern : *patterns)
      if (const std::string_view other = checking::operation_of_id(pattern); other != operation)
        throw bad_input(fmt::format("{} {}: it is of {}, and the problem of {}: leave it out", option, shown(pattern),
                                    other, operation));
  return options;
}

std::string foreign_solver(const std::string& solver, const Problem& problem) {
  if (solver == "auto" || solver == "all" || checking::operation_of_id(solver) == problem.operation_name()) return {};
  return fmt::format("solver {} is of {}, and the problem of {}", solver, checking::operation_of_id(solver),
                     problem.operation_name());
}

void require_solver_for(const std::string& solver, const std::vector<Problem>& problems) {
  checking::require_any_solver(solver);
  if (std::all_of(problems.begin(), problems.end(),
                  [&](const Problem& problem) { return !foreign_solver(solver, problem).empty(); }))
    throw bad_input(fmt::format("{}: name one of its solvers", foreign_solver(solver, problems.front())));
}

}  // namespace omniconv::cli
