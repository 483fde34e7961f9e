#include "problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>

#include "common.h"
#include "core/problem_rules.h"
#include "core/suggest.h"
#include "image/kernels.h"
#include "omniconv/error.h"
#include "ops/random_image.h"
#include "ops/solver_ids.h"
#include "sweep.h"

namespace omniconv::cli {
namespace {

constexpr std::size_t largest_problem_file = std::size_t{16} << 20;

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

// The values that the words of a list option name, each once.
template <typename T, std::size_t N>
std::vector<T> parse_words(const char* option, const std::vector<std::string>& words,
                           const std::array<std::pair<std::string_view, T>, N>& known) {
  std::vector<T> values;
  for (const std::string& word : words) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const auto& entry) { return entry.first == word; });
    if (found == known.end()) {
      std::array<std::string_view, N> names;
      std::transform(known.begin(), known.end(), names.begin(), [](const auto& entry) { return entry.first; });
      throw bad_input(fmt::format("unknown {} {}: {}", option, shown(word), suggest(word, names)));
    }
    if (std::find(values.begin(), values.end(), found->second) != values.end())
      throw bad_input(fmt::format("{}: '{}' stands twice: once is enough", option, word));
    values.push_back(found->second);
  }
  return values;
}

std::vector<Pass> parse_passes(const std::vector<std::string>& words) {
  static constexpr std::array<std::pair<std::string_view, Pass>, 3> known = {
      {{"fwd", Pass::forward}, {"bwd_data", Pass::backward_data}, {"bwd_filter", Pass::backward_filter}}};
  if (std::find(words.begin(), words.end(), "all") == words.end()) return parse_words("--pass", words, known);
  if (words.size() > 1) throw bad_input("--pass: 'all' stands beside others: give it alone");
  return {Pass::forward, Pass::backward_data, Pass::backward_filter};
}

// The problems, each with every value in turn where it is a T.
template <typename T, typename Value, typename Change>
std::vector<Problem> varied(const std::vector<Problem>& problems, const std::vector<Value>& values,
                            const Change& change) {
  if (values.empty()) return problems;
  std::vector<Problem> family;
  for (const Problem& problem : problems) {
    if (!std::holds_alternative<T>(problem)) {
      family.push_back(problem);
      continue;
    }
    for (const Value value : values) {
      T variant = std::get<T>(problem);
      change(variant, value);
      validate(variant);
      family.push_back(std::move(variant));
    }
  }
  return family;
}

std::vector<Problem> variants(std::vector<Problem> problems, const ProblemInput& input) {
  static constexpr std::array<std::pair<std::string_view, DataType>, 5> types = {{{"f64", DataType::f64},
                                                                                  {"f32", DataType::f32},
                                                                                  {"f16", DataType::f16},
                                                                                  {"bf16", DataType::bf16},
                                                                                  {"tf32", DataType::tf32}}};
  static constexpr std::array<std::pair<std::string_view, Layout>, 2> layouts = {
      {{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}}};
  problems = varied<Conv2dProblem>(problems, parse_passes(input.passes), [](Conv2dProblem& problem, Pass pass) {
    problem.pass = pass;
    if (pass != Pass::forward) problem.bias = problem.relu = false;
  });
  const std::vector<DataType> chosen_types = parse_words("--type", input.types, types);
  const auto set_type = [](auto& problem, DataType type) { problem.type = type; };
  problems = varied<Conv2dProblem>(problems, chosen_types, set_type);
  problems = varied<GemmProblem>(problems, chosen_types, set_type);
  problems = varied<Conv2dProblem>(problems, parse_words("--layout", input.layouts, layouts),
                                   [](Conv2dProblem& problem, Layout layout) { problem.layout = layout; });
  const std::vector<std::int64_t> batches(input.batch > 0 ? 1 : 0, input.batch);
  return varied<Conv2dProblem>(problems, batches, [](Conv2dProblem& problem, std::int64_t n) { problem.n = n; });
}

// A variant needs a problem that can have it.
void refuse_idle_variants(const ProblemInput& input, const std::vector<Problem>& problems) {
  const auto has = [&](std::string_view operation) {
    return std::any_of(problems.begin(), problems.end(),
                       [&](const Problem& problem) { return operation_of(problem) == operation; });
  };
  const auto refuse = [](const char* option, const char* of) {
    return bad_input(fmt::format("{} varies {}, and no problem is one: leave it out", option, of));
  };
  if (!has("conv2d")) {
    if (!input.passes.empty()) throw refuse("--pass", "convolutions");
    if (!input.layouts.empty()) throw refuse("--layout", "convolutions");
    if (input.batch > 0) throw refuse("--batch", "convolutions");
  }
  if (!input.types.empty() && !has("conv2d") && !has("gemm"))
    throw refuse("--type", "convolutions and matrix products");
}

// A request holds for every problem, so that none is served without it.
void refuse_unheard_requests(const ProblemInput& input, const std::vector<Problem>& problems) {
  const std::pair<const char*, bool> requests[] = {
      {"--units", !input.choice.units.empty()},
      {"--max-error", input.choice.max_error.has_value()},
      {"--workspace-limit", !input.choice.workspace_limit.empty()},
      {"--deterministic", input.choice.deterministic},
      {"--allow", !input.choice.allow.empty()},
      {"--deny", !input.choice.deny.empty()},
  };
  const auto filter = std::find_if(problems.begin(), problems.end(), [](const Problem& problem) {
    return std::holds_alternative<Filter2dProblem>(problem);
  });
  if (filter == problems.end()) return;
  for (const auto& [option, given] : requests)
    if (given)
      throw bad_input(fmt::format("{} is of convolutions and matrix products, and {} is none: leave one of them out",
                                  option, to_text(*filter)));
}

void add_list(CLI::App& app, const char* name, std::vector<std::string>& words, const char* meaning, const char* type) {
  app.add_option(name, words, meaning)->type_name(type)->delimiter(',')->allow_extra_args(false)->check(not_empty());
}

}  // namespace

void add_choice(CLI::App& app, ChoiceInput& input) {
  app.add_option("--units", input.units, "fma: fused multiply-adds alone; any: whatever keeps to the bound (default)")
      ->type_name("UNITS")
      ->check(not_empty());
  app.add_option_function<double>(
         "--max-error", [&input](double value) { input.max_error = value; },
         "the largest amplification of an error bound; 1024 by default")
      ->type_name("A")
      ->check(finite_number(0));
  app.add_option("--workspace-limit", input.workspace_limit, "bytes that a solver may take beside the arrays, as 512M")
      ->type_name("BYTES")
      ->check(not_empty());
  app.add_flag("--deterministic", input.deterministic, "only solvers that give the same bits in every run");
  add_list(app, "--allow", input.allow, "only these solvers: ids, or what they begin with, as conv2d/direct (a list)",
           "ID");
  add_list(app, "--deny", input.deny, "none of these solvers (a list)", "ID");
}

void add_problems(CLI::App& app, ProblemInput& input) {
  app.add_option("PROBLEM", input.texts, "problems in the notation of docs/notation.md, each quoted as one word");
  app.add_option("--problems", input.files, "a file of problems, one a line")->type_name("FILE");
  add_list(
      app, "--pass", input.passes,
      "fwd, bwd_data, bwd_filter (a list) or all: instead of the pass of convolutions; backward ones lose bias and "
      "relu",
      "PASS");
  add_list(app, "--type", input.types,
           "f64, f32, f16, bf16, tf32 (a list): instead of that of convolutions and products", "TYPE");
  add_list(app, "--layout", input.layouts, "nchw, nhwc (a list): instead of that of convolutions", "LAYOUT");
  app.add_option("--batch", input.batch, "instead of the n of convolutions")
      ->type_name("N")
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()));
  app.add_option("--sweep", input.sweeps,
                 "LETTERS=FIRST:LAST:+STEP or :xFACTOR: each problem with each value of these extents")
      ->type_name("SWEEP")
      ->allow_extra_args(false);
  app.add_option("--solver", input.choice.solver, "auto, all, or a solver's id")->capture_default_str();
  add_choice(app, input.choice);
  app.add_option("--seed", input.seed, "of the random data")
      ->capture_default_str()
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()));
}

std::vector<Problem> read_problems(const ProblemInput& input) {
  std::vector<Problem> problems;
  for (const std::string& text : input.texts) problems.push_back(parse_problem(text));
  for (const std::string& path : input.files) {
    const std::vector<Problem> more = parse_problem_list(read_text(path), path);
    problems.insert(problems.end(), more.begin(), more.end());
  }
  if (problems.empty()) throw bad_input("no problem given: name one in quotes, or a list with --problems FILE");
  refuse_idle_variants(input, problems);
  refuse_unheard_requests(input, problems);
  if (input.choice.solver != "auto" && input.choice.solver != "all") require_solver_for(input.choice.solver, problems);
  solver_options(input.choice, problems.front());  // what it refuses is no problem's fault
  return swept(variants(std::move(problems), input), input.sweeps);
}

SolverOptions solver_options(const ChoiceInput& input, const Problem& problem) {
  for (const std::vector<std::string>* patterns : {&input.allow, &input.deny})
    for (const std::string& pattern : *patterns) require_any_solver_like(pattern);
  SolverOptions options{.solver = input.solver, .deterministic = input.deterministic};
  if (!input.units.empty()) {
    static constexpr std::array<std::pair<std::string_view, Units>, 2> known = {
        {{"any", Units::any}, {"fma", Units::fma}}};
    options.units = parse_words("--units", {input.units}, known).front();
  }
  if (input.max_error) options.max_error = *input.max_error;
  if (!input.workspace_limit.empty())
    options.max_workspace_bytes =
        input.workspace_limit == "0" ? 0 : parse_bytes("--workspace-limit", input.workspace_limit);
  const auto of_this = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> own;
    std::copy_if(patterns.begin(), patterns.end(), std::back_inserter(own),
                 [&](const std::string& pattern) { return operation_of(pattern) == operation_of(problem); });
    return own;
  };
  options.allow = of_this(input.allow);
  options.deny = of_this(input.deny);
  return options;
}

std::string foreign_solver(const std::string& solver, const Problem& problem) {
  if (solver == "auto" || solver == "all" || operation_of(solver) == operation_of(problem)) return {};
  return fmt::format("solver {} is of {}, and the problem of {}", solver, operation_of(solver), operation_of(problem));
}

void require_solver_for(const std::string& solver, const std::vector<Problem>& problems) {
  require_any_solver(solver);
  if (std::all_of(problems.begin(), problems.end(),
                  [&](const Problem& problem) { return !foreign_solver(solver, problem).empty(); }))
    throw bad_input(fmt::format("{}: name one of its solvers", foreign_solver(solver, problems.front())));
}

const std::string& name_of(const Problem& problem) {
  return std::visit([](const auto& p) -> const std::string& { return p.name; }, problem);
}

Filter filter_for(const Filter2dProblem& problem, std::uint64_t seed) {
  image::Kernel kernel = image::kernel_for(problem, seed);
  return centred(problem, {.weights = std::move(kernel.weights),
                           .anchor_y = kernel.anchor_y,
                           .anchor_x = kernel.anchor_x,
                           .second_weights = std::move(kernel.second_weights)});
}

}  // namespace omniconv::cli
