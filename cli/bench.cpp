// bench: how long solvers take.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "checks.h"
#include "ops/matrix_measure.h"
#include "ops/measure.h"

namespace omniconv::cli {
namespace {

using devices::Device;

std::vector<MeasureResult> measure_filter(const Context& context, const Filter2dProblem& problem,
                                          const Device::Peaks& peaks, const std::string& versus, const Checks& checks) {
  const Filter filter = filter_for(problem, checks.input.seed);
  return results_or_refusal<MeasureResult>(checks.input.choice.solver, problem, [&] {
    return measure(context, problem, filter, peaks,
                   {.solver = checks.input.choice.solver,
                    .versus = versus,
                    .budget_seconds = checks.budget,
                    .seed = checks.input.seed});
  });
}

std::vector<MeasureResult> measure_matrix(const Context& context, const Problem& problem, const Device::Peaks& peaks,
                                          const std::string& versus, const Checks& checks) {
  return results_or_refusal<MeasureResult>(checks.input.choice.solver, problem, [&] {
    return measure(context, *work_for(problem), peaks,
                   {.solver = solver_options(checks.input.choice, problem),
                    .versus = versus,
                    .budget_seconds = checks.budget,
                    .seed = checks.input.seed});
  });
}

// A solver of another operation is nothing to compare with.
std::vector<MeasureResult> measure_any(const Context& context, const Problem& problem, const Device::Peaks& peaks,
                                       const Checks& checks) {
  const std::string foreign = checks.versus.empty() ? "" : foreign_solver(checks.versus, problem);
  const std::string versus = foreign.empty() ? checks.versus : "";
  const auto* const filter = std::get_if<Filter2dProblem>(&problem);
  std::vector<MeasureResult> results = filter != nullptr ? measure_filter(context, *filter, peaks, versus, checks)
                                                         : measure_matrix(context, problem, peaks, versus, checks);
  if (!foreign.empty())
    for (MeasureResult& result : results)
      result.versus = {.solver = checks.versus, .status = Status::refused, .reason = foreign};
  return results;
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

Json to_json(const Problem& problem, const MeasureResult& r) {
  const auto per_second = [&](double amount) { return r.seconds.median > 0 ? amount / r.seconds.median : 0; };
  Json json = {{"problem", to_text(problem)},
               {"name", name_of(problem)},
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

class Table {
 public:
  Table(const std::vector<Problem>& problems, const std::string& versus)
      : pixels_(std::any_of(problems.begin(), problems.end(),
                            [](const Problem& p) { return std::holds_alternative<Filter2dProblem>(p); })) {
    std::vector<std::string> head = {"problem", "solver", "median ms", "95 % interval"};
    if (pixels_) head.push_back("Mpixel/s");
    head.insert(head.end(), {"TFLOP/s", "GB/s", "floor ms", "reached", "floor of"});
    if (!versus.empty()) head.insert(head.end(), {versus + " ms", "ratio", "95 % interval"});
    rows_.push_back(head);
  }

  // A solver that was not timed has its reason there.
  void add(const Problem& problem, const MeasureResult& r) {
    std::vector<std::string> row = {to_text(problem), r.solver};
    if (r.status == Status::ok)
      add_figures(problem, r, row);
    else
      row.push_back(std::string(name(r.status)) + ": " + r.reason);
    rows_.push_back(row);
  }

  void print() const { print_table(rows_); }

 private:
  void add_figures(const Problem& problem, const MeasureResult& r, std::vector<std::string>& row) const {
    const double median = r.seconds.median;
    row.insert(row.end(), {fmt::format("{:.3f}", median * 1e3),
                           fmt::format("{:.3f}..{:.3f}", r.seconds.low * 1e3, r.seconds.high * 1e3)});
    if (pixels_) row.push_back(pixel_rate(problem, median));
    row.insert(row.end(), {fmt::format("{:.3f}", r.operations / median / 1e12),
                           fmt::format("{:.1f}", r.bytes / median / 1e9), fmt::format("{:.3f}", r.floor_seconds * 1e3),
                           fmt::format("{:.0f} %", 100 * r.floor_seconds / median), floor_name(r)});
    if (!r.versus) return;
    const Versus& versus = *r.versus;
    if (versus.status != Status::ok)
      row.push_back(std::string(name(versus.status)) + ": " + versus.reason);
    else
      row.insert(row.end(),
                 {fmt::format("{:.3f}", versus.seconds.median * 1e3), fmt::format("{:.2f}", versus.ratio.median),
                  fmt::format("{:.2f}..{:.2f}", versus.ratio.low, versus.ratio.high)});
  }

  static std::string pixel_rate(const Problem& problem, double seconds) {
    const auto* const filter = std::get_if<Filter2dProblem>(&problem);
    if (filter == nullptr) return "-";
    return fmt::format("{:.0f}", static_cast<double>(P(*filter)) * static_cast<double>(Q(*filter)) / seconds / 1e6);
  }

  bool pixels_;
  std::vector<std::vector<std::string>> rows_;
};

int run_bench(const Checks& checks) {
  const std::vector<Problem> problems = read_problems(checks.input);
  if (!checks.versus.empty()) require_solver_for(checks.versus, problems);
  JsonOutput output(checks.common.json);
  const Context context(context_options(checks.common));
  const auto peaks = context.impl()->measure_peaks(1.0);
  Json json = report_head("omniconv-bench/1", context.device(), &peaks);
  json["results"] = Json::array();
  Table table(problems, checks.versus);
  int failed = 0;
  for (const Problem& problem : problems) {
    stop_if_interrupted();
    for (const MeasureResult& r : measure_any(context, problem, peaks, checks)) {
      json["results"].push_back(to_json(problem, r));
      failed += r.status == Status::failed || (r.versus && r.versus->status == Status::failed);
      table.add(problem, r);
    }
  }
  if (prints(checks.common)) {
    fmt::print("{} ({}): {:.3f} TFLOP/s of fp32 multiply-adds and {:.1f} GB/s of copying, measured\n",
               context.device().id, context.device().name, peaks.tflops, peaks.gbps);
    table.print();
    if (!checks.versus.empty())
      fmt::print("ratio: the time of {}, divided by the solver's; the median of neighbouring runs, in turn\n",
                 checks.versus);
  }
  output.write(json);
  return failed > 0 ? 1 : 0;
}

}  // namespace

void add_bench(CLI::App& app, Body& body) {
  const auto checks = std::make_shared<Checks>();
  CLI::App* const command = add_command(app, "bench", "time solvers on fresh random data with cold caches",
                                        "  omniconv bench \"filter2d u8 h4000w6000c3r7s7\" --solver all\n"
                                        "  omniconv bench \"n1c256h56w56k256r3s3p1\" --pass all --sweep n=1:8:x2",
                                        *checks);
  command->get_option("--solver")
      ->description("auto, all (without the references, which are timed where they are named), or a solver's id");
  command->add_option("--budget", checks->budget, "seconds for each solver and problem")
      ->capture_default_str()
      ->check(finite_number(0.001));
  command->add_option("--vs", checks->versus, "a solver's id, timed in turn with each, and the ratio of the two")
      ->type_name("ID")
      ->check(not_empty());
  command->callback([checks, &body] { body = [checks] { return run_bench(*checks); }; });
}

}  // namespace omniconv::cli
