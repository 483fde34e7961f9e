// explain: which solvers can serve a problem, in the order of choice, and why not.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "checking/host.h"
#include "checking/measure.h"
#include "checks.h"
#include "choice/choose.h"

namespace omniconv::cli {
namespace {

using checking::MeasureResult;
using checking::Status;

std::string milliseconds(double seconds) {
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

// A candidate, as it is shown.
struct Shown {
  Candidate candidate;
  double predicted_seconds = 0;
  std::optional<MeasureResult> measured = {};
};

Json to_json(const Shown& shown) {
  Json json = describe(shown.candidate);
  if (shown.candidate.applicable) json["predicted_ms"] = shown.predicted_seconds * 1e3;
  if (shown.measured)
    json["measured"] = {{"status", name(shown.measured->status)},
                        {"reason", shown.measured->reason},
                        {"median_ms", shown.measured->seconds.median * 1e3},
                        {"ci95_ms", {shown.measured->seconds.low * 1e3, shown.measured->seconds.high * 1e3}},
                        {"samples", shown.measured->seconds.samples}};
  return json;
}

std::vector<std::string> table_row(const Shown& shown) {
  std::vector<std::string> times = {"predicted " + milliseconds(shown.predicted_seconds)};
  if (shown.candidate.counted != 1) times.back() += fmt::format(", counted {:g} times", shown.candidate.counted);
  if (const auto& m = shown.measured)
    times.push_back(m->status == Status::ok ? "measured " + milliseconds(m->seconds.median) : m->reason);
  return candidate_row(shown.candidate, times);
}

// Explains one problem after the other, on one device.
class Explaining {
 public:
  Explaining(const Checks& checks, const Context& context)
      : checks_(checks),
        context_(context),
        peaks_(context.impl()->measure_peaks(checks.peak_seconds())),
        print_(prints(checks.common)) {}

  const devices::Device::Peaks& peaks() const { return peaks_; }
  bool any_failed() const { return failed_; }
  bool any_served() const { return served_; }

  // Into the results as it comes: what is found before an interruption stays.
  void explain_problem(const Problem& problem, Json& results) {
    if (print_) fmt::print("{}\n", to_text(problem));
    std::string reason = foreign_solver(checks_.input.choice.solver, problem);
    if (reason.empty()) try {
        return explain_candidates(problem, results);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_input) throw;
        reason = error.what();
      }
    if (print_) fmt::print("  refused: {}\n", reason);
    results.push_back({{"problem", to_text(problem)}, {"reason", reason}, {"candidates", Json::array()}});
  }

 private:
  bool every() const { return checks_.input.choice.solver == "auto" || checks_.input.choice.solver == "all"; }

  // What is known of the problem, then the candidates (of --solver ID that one).
  void explain_candidates(const Problem& problem, Json& results) {
    const operations::Operation& operation = problem.operation();
    const operations::AnyTask task = operation.task(problem, checks_.input.seed);
    SolverOptions options = solver_options(checks_.input.choice, problem.operation_name());
    if (every()) options.solver = "auto";
    const std::string known = operation.describe(task);
    const operations::Figures figures = operation.figures(task);
    const std::vector<choice::Considered> found =
        choice::consider(operation, task, context_.impl(), options, checks_.input.choice.solver == "all");
    if (print_) fmt::print("  on {} ({})\n", context_.device().id, context_.device().name);
    if (print_ && !known.empty()) fmt::print("  {}\n", known);
    if (print_ && every()) fmt::print("  cheapest first; the first is what auto runs\n");
    results.push_back({{"problem", to_text(problem)},
                       {"about", known},
                       {"multiply_adds", figures.operations / 2},
                       {"bytes", checking::moved_bytes(figures, operation.arrays(problem))},
                       {"candidates", Json::array()}});
    std::vector<std::vector<std::string>> table;
    try {
      for (const choice::Considered& one : found) {
        const Shown shown = shown_of(problem, choice::candidate_of(one), options);
        results.back()["candidates"].push_back(to_json(shown));
        table.push_back(table_row(shown));
      }
    } catch (...) {
      if (print_) print_table(table);
      throw;
    }
    if (print_) print_table(table);
  }

  Shown shown_of(const Problem& problem, Candidate candidate, SolverOptions options) {
    Shown shown{.candidate = std::move(candidate)};
    if (!shown.candidate.applicable) return shown;
    served_ = true;
    shown.predicted_seconds = checking::predicted_seconds(shown.candidate.cost, shown.candidate.bytes, peaks_);
    if (!checks_.measure) return shown;
    stop_if_interrupted();
    options.solver = shown.candidate.solver;
    shown.measured = checking::measure(context_, problem, peaks_,
                                       {.solver = options,
                                        .budget_seconds = checks_.budget,
                                        .longest_seconds = checks_.budget,
                                        .seed = checks_.input.seed,
                                        .host = host_})
                         .front();
    failed_ = failed_ || shown.measured->status == Status::failed;
    return shown;
  }

  const Checks& checks_;
  const Context& context_;
  devices::Device::Peaks peaks_;
  std::shared_ptr<checking::Host> host_ = std::make_shared<checking::Host>(context_);
  bool print_, failed_ = false, served_ = false;
};

int run_explain(const Checks& checks, Json& json, const Keep& keep) {
  const std::vector<Problem> problems = read_problems(checks.input);
  const Context context(context_options(checks.common));
  Explaining explaining(checks, context);
  set_device(json, context.device(), &explaining.peaks());
  json["results"] = Json::array();
  for (const Problem& problem : problems) {
    stop_if_interrupted();
    if (&problem != problems.data()) keep();  // this one may exhaust the machine's memory
    explaining.explain_problem(problem, json["results"]);
  }
  return explaining.any_failed() || !explaining.any_served() ? 1 : 0;
}

}  // namespace

void add_explain(CLI::App& app, Body& body) {
  const auto checks = std::make_shared<Checks>();
  CLI::App* const command =
      add_command(app, "explain", "show which solvers can serve a problem, in the order of choice, and why not",
                  "  omniconv explain \"filter2d u8 h480w640c3r9s9 kernel:gaussian:9\"\n"
                  "  omniconv explain \"n1c256h56w56k256r3s3p1\" --workspace-limit 64M",
                  *checks);
  command->add_flag("--measure", checks->measure, "time each candidate beside its prediction");
  command
      ->add_option("--budget", checks->budget,
                   "of --measure: seconds for each candidate; one predicted to need more for one run is left out")
      ->capture_default_str()
      ->check(finite_number(0.001));
  command->callback([checks, &body] {
    body = [checks] {
      return with_growing_report(checks->common.json, "omniconv-explain/1",
                                 [&](Json& json, const Keep& keep) { return run_explain(*checks, json, keep); });
    };
  });
}

}  // namespace omniconv::cli
