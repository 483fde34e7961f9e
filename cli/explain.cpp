// explain: which solvers can serve a problem, in the order of choice, and why not.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "checks.h"
#include "core/weights.h"
#include "ops/matrix_measure.h"
#include "ops/measure.h"
#include "ops/predict.h"

namespace omniconv::cli {
namespace {

std::string milliseconds(double seconds) {
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

// A candidate of any operation, as it is shown.
struct Shown {
  std::string solver;
  bool applicable = false;
  std::string reason, bound;
  std::int64_t workspace_bytes = 0;
  double predicted_seconds = 0;
  std::string cost;  // in words
  Json extra = {};   // of its operation
  std::optional<MeasureResult> measured = {};
};

Json to_json(const Shown& c) {
  Json json = {
      {"solver", c.solver}, {"applicable", c.applicable}, {"reason", c.reason}, {"workspace_bytes", c.workspace_bytes}};
  json.update(c.extra);
  json["bound"] = c.bound;
  if (c.applicable) json["predicted_ms"] = c.predicted_seconds * 1e3;
  if (c.measured)
    json["measured"] = {{"status", name(c.measured->status)},
                        {"reason", c.measured->reason},
                        {"median_ms", c.measured->seconds.median * 1e3},
                        {"ci95_ms", {c.measured->seconds.low * 1e3, c.measured->seconds.high * 1e3}},
                        {"samples", c.measured->seconds.samples}};
  return json;
}

std::vector<std::string> table_row(const Shown& c) {
  if (!c.applicable) return {"  no", c.solver, c.reason};
  std::vector<std::string> row = {"  yes", c.solver, c.cost, "predicted " + milliseconds(c.predicted_seconds)};
  if (const auto& m = c.measured)
    row.push_back(m->status == Status::ok ? "measured " + milliseconds(m->seconds.median) : m->reason);
  row.insert(row.end(), {"workspace " + print_bytes(c.workspace_bytes), c.bound});
  return row;
}

// Explains one problem after the other, on one device.
class Explaining {
 public:
  Explaining(const Checks& checks, const Context& context)
      : checks_(checks), context_(context), peaks_(context.impl()->measure_peaks(1.0)), print_(prints(checks.common)) {}

  const devices::Device::Peaks& peaks() const { return peaks_; }
  bool any_failed() const { return failed_; }

  Json explain_any(const Problem& problem) {
    if (const auto* const filter = std::get_if<Filter2dProblem>(&problem)) {
      const Filter weights = filter_for(*filter, checks_.input.seed);
      return entry_or_refusal(problem, [&] { return explain_filter(*filter, weights); });
    }
    return entry_or_refusal(problem, [&] { return explain_matrix(problem); });
  }

 private:
  bool every() const { return checks_.input.choice.solver == "auto" || checks_.input.choice.solver == "all"; }

  template <typename Explain>
  Json entry_or_refusal(const Problem& problem, const Explain& explain) {
    if (print_) fmt::print("{}\n", to_text(problem));
    Json entry;
    std::string reason = foreign_solver(checks_.input.choice.solver, problem);
    if (reason.empty()) reason = refusal_of([&] { entry = explain(); });
    if (reason.empty()) return entry;
    if (print_) fmt::print("  refused: {}\n", reason);
    return {{"problem", to_text(problem)}, {"reason", reason}, {"candidates", Json::array()}};
  }

  // The weights, then the candidates (of --solver ID that one).
  Json explain_filter(const Filter2dProblem& problem, const Filter& filter) {
    const Filter2dTask task = task_for(problem, filter);
    const std::string form = fmt::format("{}{}", task.second ? "a pair, " : "", name(task.weights.form));
    const bool exact = task.weights.exact && (!task.second || task.second->exact);
    print_device();
    if (print_) fmt::print("  weights: {}{}\n", form, exact ? "; every sum is exact in fp32, whatever its order" : "");
    print_order();
    std::vector<Shown> candidates;
    for (const Filter2dCandidate& c : explain(context_, problem, filter)) {
      if (!every() && c.solver != checks_.input.choice.solver) continue;
      candidates.push_back({.solver = c.solver,
                            .applicable = c.applicable,
                            .reason = c.reason,
                            .bound = c.bound,
                            .workspace_bytes = c.workspace_bytes,
                            .cost = fmt::format("{:.4g} operations an element", c.operations),
                            .extra = {{"operations", c.operations}}});
      if (!c.applicable) continue;
      Shown& shown = candidates.back();
      shown.predicted_seconds = predicted_seconds(problem, c.operations, peaks_);
      if (checks_.measure)
        shown.measured = measured([&] {
          return measure(context_, problem, filter, peaks_,
                         {.solver = c.solver,
                          .budget_seconds = checks_.budget,
                          .longest_seconds = checks_.budget,
                          .seed = checks_.input.seed});
        });
    }
    Json entry = {{"problem", to_text(problem)}, {"weights", form}, {"exact", exact}};
    return with(std::move(entry), candidates);
  }

  Json explain_matrix(const Problem& problem) {
    const std::unique_ptr<MatrixWork> work = work_for(problem);
    SolverOptions options = solver_options(checks_.input.choice, problem);
    if (every()) options.solver = "auto";
    std::vector<Shown> candidates;
    const std::vector<Candidate> found = work->explain(context_, options);
    print_device();
    print_order();
    for (const Candidate& c : found) {
      candidates.push_back({.solver = c.solver,
                            .applicable = c.applicable,
                            .reason = c.reason,
                            .bound = c.bound,
                            .workspace_bytes = c.workspace_bytes,
                            .cost = fmt::format("cost {:.3g} multiply-adds", c.cost),
                            .extra = {{"cost", c.cost}}});
      if (!c.applicable) continue;
      Shown& shown = candidates.back();
      shown.predicted_seconds = predicted_seconds(c.cost, peaks_);
      options.solver = c.solver;
      if (checks_.measure)
        shown.measured = measured([&] {
          return measure(context_, *work, peaks_,
                         {.solver = options,
                          .budget_seconds = checks_.budget,
                          .longest_seconds = checks_.budget,
                          .seed = checks_.input.seed});
        });
    }
    return with({{"problem", to_text(problem)}, {"multiply_adds", work->multiply_adds}, {"bytes", array_bytes(*work)}},
                candidates);
  }

  template <typename Measure>
  MeasureResult measured(const Measure& measure) {
    stop_if_interrupted();
    MeasureResult result = measure().front();
    failed_ = failed_ || result.status == Status::failed;
    return result;
  }

  void print_device() const {
    if (print_) fmt::print("  on {} ({})\n", context_.device().id, context_.device().name);
  }
  void print_order() const {
    if (print_ && every()) fmt::print("  cheapest first; the first is what auto runs\n");
  }

  Json with(Json entry, const std::vector<Shown>& candidates) const {
    entry["candidates"] = Json::array();
    std::vector<std::vector<std::string>> table;
    for (const Shown& candidate : candidates) {
      entry["candidates"].push_back(to_json(candidate));
      table.push_back(table_row(candidate));
    }
    if (print_) print_table(table);
    return entry;
  }

  const Checks& checks_;
  const Context& context_;
  devices::Device::Peaks peaks_;
  bool print_, failed_ = false;
};

int run_explain(const Checks& checks) {
  const std::vector<Problem> problems = read_problems(checks.input);
  JsonOutput output(checks.common.json);
  const Context context(context_options(checks.common));
  Explaining explaining(checks, context);
  Json json = report_head("omniconv-explain/1", context.device(), &explaining.peaks());
  json["results"] = Json::array();
  for (const Problem& problem : problems) {
    stop_if_interrupted();
    json["results"].push_back(explaining.explain_any(problem));
  }
  output.write(json);
  return explaining.any_failed() ? 1 : 0;
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
  command->callback([checks, &body] { body = [checks] { return run_explain(*checks); }; });
}

}  // namespace omniconv::cli
