// verify, bench, explain: what the solvers do with problems.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "common.h"
#include "core/weights.h"
#include "omniconv/error.h"
#include "ops/measure.h"
#include "ops/predict.h"
#include "ops/verify.h"
#include "report.h"

namespace omniconv::cli {
namespace {

struct Checks {
  Common common;
  ProblemInput input;
  bool sampled = false;
  std::int64_t samples = 4096, strip_rows = 0;
  double budget = 1;
  std::string versus;
  bool measure = false;
};

void stop_if_interrupted() {
  if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted");
}

// Of the options, before the work: one that is unknown is no problem's fault.
void require_solvers(const Checks& checks) {
  if (checks.input.solver != "auto" && checks.input.solver != "all") require_solver(checks.input.solver);
  if (!checks.versus.empty()) require_solver(checks.versus);
}

// Why no solver at all serves a problem, or empty: the others of a list are served all the same.
template <typename Serve>
std::string refusal_of(const Serve& serve) {
  try {
    serve();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::bad_input) throw;
    return error.what();
  }
  return {};
}

std::string title(const Filter2dProblem& problem) {
  return to_text(problem);
}

int run_verify(const Checks& checks) {
  require_solvers(checks);
  JsonOutput output(checks.common.json);
  const Context context(context_options(checks.common));
  Json json = report_head("omniconv-verify/1", context.device(), nullptr);
  json["results"] = Json::array();
  const bool print = !checks.common.quiet && checks.common.json != "-";
  int passed = 0, failed = 0, refused = 0;
  for (const Filter2dProblem& problem : read_problems(checks.input)) {
    stop_if_interrupted();
    const Filter filter = filter_for(problem, checks.input.seed);
    const VerifyOptions options{.solver = checks.input.solver,
                                .sampled = checks.sampled,
                                .samples = checks.samples,
                                .strip_rows = checks.strip_rows,
                                .seed = checks.input.seed};
    if (print) fmt::print("{}\n", title(problem));
    std::vector<VerifyResult> results;
    if (const std::string reason = refusal_of([&] { results = verify(context, problem, filter, options); });
        !reason.empty())
      results = {{.solver = checks.input.solver, .status = Status::refused, .reason = reason}};
    for (const VerifyResult& result : results) {
      json["results"].push_back({{"problem", to_text(problem)},
                                 {"name", problem.name},
                                 {"solver", result.solver},
                                 {"status", name(result.status)},
                                 {"reason", result.reason},
                                 {"checked", result.checked},
                                 {"error", result.error},
                                 {"bound", result.bound}});
      passed += result.status == Status::ok;
      failed += result.status == Status::failed;
      refused += result.status == Status::refused;
      if (!print) continue;
      const std::string figures =
          result.bound == 0 ? "bit-equal" : fmt::format("error {:.3g} of bound {:.3g}", result.error, result.bound);
      if (result.status == Status::ok)
        fmt::print("  ok      {:<30} {} over {} elements\n", result.solver, figures, result.checked);
      else
        fmt::print("  {:<7} {:<30} {}\n", name(result.status), result.solver, result.reason);
    }
  }
  if (print) fmt::print("{} passed, {} failed, {} refused\n", passed, failed, refused);
  output.write(json);
  return failed > 0 ? 1 : 0;
}

Json to_json(const Versus& versus) {
  return {{"solver", versus.solver},
          {"status", name(versus.status)},
          {"reason", versus.reason},
          {"median_ms", versus.seconds.median * 1e3},
          {"min_ms", versus.seconds.minimum * 1e3},
          {"ci95_ms", {versus.seconds.low * 1e3, versus.seconds.high * 1e3}},
          {"samples", versus.seconds.samples},
          {"ratio", versus.ratio.median},
          {"ratio_ci95", {versus.ratio.low, versus.ratio.high}}};
}

const char* floor_name(const MeasureResult& r) {
  return r.memory_binds ? "memory" : "arithmetic";
}

Json to_json(const Filter2dProblem& problem, const MeasureResult& r) {
  const auto per_second = [&](double amount) { return r.seconds.median > 0 ? amount / r.seconds.median : 0; };
  Json json = {{"problem", to_text(problem)},
               {"name", problem.name},
               {"solver", r.solver},
               {"vendor", false},
               {"status", name(r.status)},
               {"reason", r.reason},
               {"median_ms", r.seconds.median * 1e3},
               {"min_ms", r.seconds.minimum * 1e3},
               {"ci95_ms", {r.seconds.low * 1e3, r.seconds.high * 1e3}},
               {"samples", r.seconds.samples},
               {"predicted_ms", r.predicted_seconds * 1e3},
               {"tflops", per_second(r.operations) / 1e12},
               {"gbps", per_second(r.bytes) / 1e9},
               {"floor_ms", r.floor_seconds * 1e3},
               {"floor_binds", r.floor_seconds == 0 ? "" : floor_name(r)},
               {"roofline", per_second(r.floor_seconds)},
               {"compile_ms", r.compile_seconds * 1e3},
               {"plan_ms", r.plan_seconds * 1e3},
               {"transfer_ms", r.transfer_seconds * 1e3},
               {"workspace_bytes", r.workspace_bytes},
               {"error", r.error},
               {"bound", r.bound},
               {"config", Json::object()}};
  if (r.versus) json["vs"] = to_json(*r.versus);
  return json;
}

// The table's row of one result; a solver that was not timed has its reason there.
std::vector<std::string> table_row(const Filter2dProblem& problem, const MeasureResult& r) {
  std::vector<std::string> row = {title(problem), r.solver};
  if (r.status != Status::ok) {
    row.push_back(std::string(name(r.status)) + ": " + r.reason);
    return row;
  }
  const double pixels = static_cast<double>(P(problem)) * static_cast<double>(Q(problem)), median = r.seconds.median;
  row.insert(
      row.end(),
      {fmt::format("{:.3f}", median * 1e3), fmt::format("{:.3f}..{:.3f}", r.seconds.low * 1e3, r.seconds.high * 1e3),
       fmt::format("{:.0f}", pixels / median / 1e6), fmt::format("{:.3f}", r.operations / median / 1e12),
       fmt::format("{:.1f}", r.bytes / median / 1e9), fmt::format("{:.3f}", r.floor_seconds * 1e3),
       fmt::format("{:.0f} %", 100 * r.floor_seconds / median), floor_name(r)});
  if (!r.versus) return row;
  const Versus& versus = *r.versus;
  if (versus.status != Status::ok)
    row.push_back(std::string(name(versus.status)) + ": " + versus.reason);
  else
    row.insert(row.end(),
               {fmt::format("{:.3f}", versus.seconds.median * 1e3), fmt::format("{:.2f}", versus.ratio.median),
                fmt::format("{:.2f}..{:.2f}", versus.ratio.low, versus.ratio.high)});
  return row;
}

int run_bench(const Checks& checks) {
  require_solvers(checks);
  JsonOutput output(checks.common.json);
  const std::vector<Filter2dProblem> problems = read_problems(checks.input);
  const Context context(context_options(checks.common));
  const auto peaks = context.impl()->measure_peaks(1.0);
  Json json = report_head("omniconv-bench/1", context.device(), &peaks);
  json["results"] = Json::array();
  const bool print = !checks.common.quiet && checks.common.json != "-";
  std::vector<std::vector<std::string>> table = {{"problem", "solver", "median ms", "95 % interval", "Mpixel/s",
                                                  "TFLOP/s", "GB/s", "floor ms", "reached", "floor of"}};
  const std::string& versus = checks.versus;
  if (!versus.empty()) table.front().insert(table.front().end(), {versus + " ms", "ratio", "95 % interval"});
  int failed = 0;
  for (const Filter2dProblem& problem : problems) {
    stop_if_interrupted();
    const Filter filter = filter_for(problem, checks.input.seed);
    const MeasureOptions options{
        .solver = checks.input.solver, .versus = versus, .budget_seconds = checks.budget, .seed = checks.input.seed};
    std::vector<MeasureResult> results;
    if (const std::string reason = refusal_of([&] { results = measure(context, problem, filter, peaks, options); });
        !reason.empty())
      results = {{.solver = checks.input.solver, .status = Status::refused, .reason = reason}};
    for (const MeasureResult& r : results) {
      json["results"].push_back(to_json(problem, r));
      failed += r.status == Status::failed || (r.versus && r.versus->status == Status::failed);
      table.push_back(table_row(problem, r));
    }
  }
  if (print) {
    fmt::print("{} ({}): {:.3f} TFLOP/s of fp32 multiply-adds and {:.1f} GB/s of copying, measured\n",
               context.device().id, context.device().name, peaks.tflops, peaks.gbps);
    print_table(table);
    if (!versus.empty())
      fmt::print("ratio: the time of {}, divided by the solver's; the median of neighbouring runs, in turn\n", versus);
  }
  output.write(json);
  return failed > 0 ? 1 : 0;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

// What is said of an applicable candidate's time: the prediction, and the measurement where one was asked for.
struct Timing {
  double predicted_seconds = 0;
  std::optional<MeasureResult> measured;
};

Timing time_of(const Filter2dCandidate& candidate, const Filter2dProblem& problem, const Filter& filter,
               const Context& context, const devices::Device::Peaks& peaks, const Checks& checks) {
  Timing timing{.predicted_seconds = predicted_seconds(problem, candidate.operations, peaks), .measured = {}};
  if (!checks.measure) return timing;
  stop_if_interrupted();
  timing.measured = measure(context, problem, filter, peaks,
                            {.solver = candidate.solver,
                             .budget_seconds = checks.budget,
                             .longest_seconds = checks.budget,
                             .seed = checks.input.seed})
                        .front();
  return timing;
}

Json to_json(const Filter2dCandidate& c, const Timing& timing) {
  Json json = {{"solver", c.solver},         {"applicable", c.applicable},
               {"reason", c.reason},         {"workspace_bytes", c.workspace_bytes},
               {"operations", c.operations}, {"bound", c.bound}};
  if (c.applicable) json["predicted_ms"] = timing.predicted_seconds * 1e3;
  if (timing.measured)
    json["measured"] = {{"status", name(timing.measured->status)},
                        {"reason", timing.measured->reason},
                        {"median_ms", timing.measured->seconds.median * 1e3},
                        {"ci95_ms", {timing.measured->seconds.low * 1e3, timing.measured->seconds.high * 1e3}},
                        {"samples", timing.measured->seconds.samples}};
  return json;
}

std::vector<std::string> table_row(const Filter2dCandidate& c, const Timing& timing) {
  if (!c.applicable) return {"  no", c.solver, c.reason};
  std::vector<std::string> row = {"  yes", c.solver, fmt::format("{:.4g} operations an element", c.operations),
                                  "predicted " + milliseconds(timing.predicted_seconds)};
  if (const auto& m = timing.measured)
    row.push_back(m->status == Status::ok ? "measured " + milliseconds(m->seconds.median) : m->reason);
  row.insert(row.end(), {"workspace " + print_bytes(c.workspace_bytes), c.bound});
  return row;
}

// The weights, then the candidates (of --solver ID that one), as text if asked and as JSON. Adds to `failed`.
Json explanation(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                 const devices::Device::Peaks& peaks, const Checks& checks, bool print, int& failed) {
  const Filter2dTask task = task_for(problem, filter);
  const std::string form = fmt::format("{}{}", task.second ? "a pair, " : "", name(task.weights.form));
  const bool exact = task.weights.exact && (!task.second || task.second->exact);
  const bool every = checks.input.solver == "auto" || checks.input.solver == "all";
  Json entry = {{"problem", to_text(problem)}, {"weights", form}, {"exact", exact}, {"candidates", Json::array()}};
  if (print) {
    fmt::print("  on {} ({})\n  weights: {}{}\n", context.device().id, context.device().name, form,
               exact ? "; every sum is exact in fp32, whatever its order" : "");
    if (every) fmt::print("  cheapest first; the first is what auto runs\n");
  }
  std::vector<std::vector<std::string>> table;
  for (const Filter2dCandidate& c : explain(context, problem, filter)) {
    if (!every && c.solver != checks.input.solver) continue;
    const Timing timing = c.applicable ? time_of(c, problem, filter, context, peaks, checks) : Timing{};
    failed += timing.measured && timing.measured->status == Status::failed;
    entry["candidates"].push_back(to_json(c, timing));
    table.push_back(table_row(c, timing));
  }
  if (print) print_table(table);
  return entry;
}

int run_explain(const Checks& checks) {
  require_solvers(checks);
  JsonOutput output(checks.common.json);
  const std::vector<Filter2dProblem> problems = read_problems(checks.input);
  const Context context(context_options(checks.common));
  const auto peaks = context.impl()->measure_peaks(1.0);
  Json json = report_head("omniconv-explain/1", context.device(), &peaks);
  json["results"] = Json::array();
  const bool print = !checks.common.quiet && checks.common.json != "-";
  int failed = 0;
  for (const Filter2dProblem& problem : problems) {
    stop_if_interrupted();
    const Filter filter = filter_for(problem, checks.input.seed);
    if (print) fmt::print("{}\n", title(problem));
    Json entry;
    const auto serve = [&] { entry = explanation(context, problem, filter, peaks, checks, print, failed); };
    if (const std::string reason = refusal_of(serve); !reason.empty()) {
      entry = {{"problem", to_text(problem)}, {"reason", reason}, {"candidates", Json::array()}};
      if (print) fmt::print("  refused: {}\n", reason);
    }
    json["results"].push_back(entry);
  }
  output.write(json);
  return failed > 0 ? 1 : 0;
}

CLI::App* add(CLI::App& app, const char* name, const char* meaning, const char* example,
              const std::shared_ptr<Checks>& checks) {
  CLI::App* const command = app.add_subcommand(name, meaning);
  command->footer(std::string("Example: ") + example);
  add_common(*command, checks->common);
  add_problems(*command, checks->input);
  return command;
}

}  // namespace

void add_verify(CLI::App& app, Body& body) {
  const auto checks = std::make_shared<Checks>();
  CLI::App* const command =
      add(app, "verify", "run solvers on random data and check every result against the references",
          "omniconv verify \"filter2d u8 h480w640c3r5s5 reflect101\" --solver all", checks);
  command->add_flag("--sampled", checks->sampled, "check a random sample of the outputs, edges among them");
  command->add_option("--samples", checks->samples, "how many")->capture_default_str()->check(whole_number(1, 1 << 30));
  command->add_option("--strip-rows", checks->strip_rows, "run in strips of so many output rows; 0: at once")
      ->check(whole_number(0, std::int64_t{1} << 40));
  command->callback([checks, &body] { body = [checks] { return run_verify(*checks); }; });
}

void add_bench(CLI::App& app, Body& body) {
  const auto checks = std::make_shared<Checks>();
  CLI::App* const command = add(app, "bench", "time solvers on fresh random data with cold caches",
                                "omniconv bench \"filter2d u8 h4000w6000c3r7s7\" --solver all", checks);
  command->add_option("--budget", checks->budget, "seconds for each solver and problem")
      ->capture_default_str()
      ->check(finite_number(0.001));
  command->add_option("--vs", checks->versus, "a solver's id, timed in turn with each, and the ratio of the two")
      ->type_name("ID")
      ->check(not_empty());
  command->callback([checks, &body] { body = [checks] { return run_bench(*checks); }; });
}

void add_explain(CLI::App& app, Body& body) {
  const auto checks = std::make_shared<Checks>();
  CLI::App* const command =
      add(app, "explain", "show which solvers can serve a problem, in the order of choice, and why not",
          "omniconv explain \"filter2d u8 h480w640c3r9s9 kernel:gaussian:9\"", checks);
  command->add_flag("--measure", checks->measure, "time each candidate beside its prediction");
  command
      ->add_option("--budget", checks->budget,
                   "of --measure: seconds for each candidate; one predicted to need more for one run is left out")
      ->capture_default_str()
      ->check(finite_number(0.001));
  command->callback([checks, &body] { body = [checks] { return run_explain(*checks); }; });
}

}  // namespace omniconv::cli
