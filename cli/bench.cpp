// bench: how long solvers take.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "checking/host.h"
#include "checking/measure.h"
#include "checking/plans_ahead.h"
#include "checks.h"
#include "vendor/vendor.h"

namespace omniconv::cli {
namespace {

using checking::AlsoPrepared;
using checking::MeasureResult;
using checking::Status;
using checking::Versus;
using devices::Device;

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

Json to_json(const AlsoPrepared& prepared) {
  return {{"arrays", prepared.arrays},
          {"status", name(prepared.status)},
          {"reason", prepared.reason},
          {"median_ms", prepared.seconds.median * 1e3},
          {"min_ms", prepared.seconds.minimum * 1e3},
          {"ci95_ms", {prepared.seconds.low * 1e3, prepared.seconds.high * 1e3}},
          {"samples", prepared.seconds.samples},
          {"prepare_ms", prepared.preparing.median * 1e3},
          {"workspace_bytes", prepared.workspace_bytes},
          {"config", config_of(prepared.tuning)}};
}

const char* floor_name(const MeasureResult& r) {
  return r.memory_binds ? "memory" : "arithmetic";
}

Json to_json(const Problem& problem, const MeasureResult& r) {
  const auto per_second = [&](double amount) { return r.seconds.median > 0 ? amount / r.seconds.median : 0; };
  Json json = {{"problem", to_text(problem)},
               {"name", problem.name()},
               {"solver", r.solver},
               {"vendor", r.is_vendors},
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
               {"config", config_of(r.tuning)}};
  if (r.versus) json["vs"] = to_json(*r.versus);
  if (r.prepared) json["prepared"] = to_json(*r.prepared);
  return json;
}

// A column of the table: cells are as wide as it is, at least.
struct Column {
  std::string head;
  int width;
  int importance;  // those of the highest go first where the terminal is narrow
};

// Rows as they come, under each problem's text, in columns of a fixed width: as many as fit the terminal.
class Table {
 public:
  Table(bool has_pixels, bool also_prepared, const std::string& versus) : also_prepared_(also_prepared) {
    columns_ = {{"solver", 30, 0}, {"median ms", 10, 0}, {"95 % interval", 18, 4}, {"TFLOP/s", 8, 1},
                {"GB/s", 8, 3},    {"floor ms", 9, 5},   {"reached", 8, 2},        {"of", 10, 2}};
    if (has_pixels) columns_.insert(columns_.begin() + 3, {"Mpixel/s", 9, 1});
    if (also_prepared) columns_.push_back({"prepared ms", 11, 0});
    if (!versus.empty()) {
      columns_.push_back({"vs ms", 10, 1});
      columns_.push_back({"ratio", 6, 0});
      columns_.push_back({"95 % interval", 13, 2});
    }
    has_pixels_ = has_pixels;
    const int terminal = terminal_columns();
    most_importance_ = 9;
    while (terminal > 0 && most_importance_ > 0 && width() > terminal) --most_importance_;
  }

  void print_head() const {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) add(i, columns_[i].head, line);
    print_line(line);
  }

  // A solver that was not timed has its reason there.
  void print(const MeasureResult& r) const {
    std::string line;
    if (r.status != Status::ok) {
      fmt::print("  {:<28} {}: {}\n", r.solver, name(r.status), r.reason);
    } else {
      const std::vector<std::string> cells = cells_of(r);
      for (std::size_t i = 0; i < cells.size(); ++i) add(i, cells[i], line);
      print_line(line);
    }
    std::fflush(stdout);
  }

 private:
  int width() const {
    int all = 0;
    for (const Column& column : columns_)
      if (column.importance <= most_importance_) all += column.width + 2;
    return all;
  }

  void add(std::size_t i, const std::string& cell, std::string& line) const {
    const Column& column = columns_[i];
    if (column.importance > most_importance_) return;
    if (i == 0)
      line += fmt::format("  {:<{}}", cell, column.width - 2);
    else if (column.head == "of")
      line += fmt::format("  {:<{}}", cell, column.width);
    else
      line += fmt::format("  {:>{}}", cell, column.width);
  }

  std::vector<std::string> cells_of(const MeasureResult& r) const {
    const double median = r.seconds.median;
    std::vector<std::string> cells = {r.solver, fmt::format("{:.3f}", median * 1e3),
                                      fmt::format("{:.3f}..{:.3f}", r.seconds.low * 1e3, r.seconds.high * 1e3)};
    if (has_pixels_) cells.push_back(r.pixels > 0 ? fmt::format("{:.0f}", r.pixels / median / 1e6) : "-");
    const double reached = r.floor_seconds / median;
    cells.insert(cells.end(),
                 {fmt::format("{:.3f}", r.operations / median / 1e12), fmt::format("{:.1f}", r.bytes / median / 1e9),
                  fmt::format("{:.3f}", r.floor_seconds * 1e3), fmt::format("{:.0f} %", 100 * reached),
                  reached > 1 ? fmt::format("{} (above the measured peak)", floor_name(r)) : floor_name(r)});
    if (also_prepared_) cells.push_back(prepared_cell(r));
    if (!r.versus) return cells;
    const Versus& versus = *r.versus;
    if (versus.status != Status::ok)
      cells.push_back(fmt::format("{}: {}", name(versus.status), versus.reason));
    else
      cells.insert(cells.end(),
                   {fmt::format("{:.3f}", versus.seconds.median * 1e3), fmt::format("{:.2f}", versus.ratio.median),
                    fmt::format("{:.2f}..{:.2f}", versus.ratio.low, versus.ratio.high)});
    return cells;
  }

  static std::string prepared_cell(const MeasureResult& r) {
    if (!r.prepared) return "-";
    return r.prepared->status == Status::ok ? fmt::format("{:.3f}", r.prepared->seconds.median * 1e3)
                                            : fmt::format("{}: {}", name(r.prepared->status), r.prepared->reason);
  }

  std::vector<Column> columns_;
  bool has_pixels_, also_prepared_;
  int most_importance_;
};

// The peaks, and what was timed by them.
class Benching {
 public:
  Benching(const Checks& checks, const Context& context, Json& json)
      : checks_(checks),
        context_(context),
        json_(json),
        peaks_(context.impl()->measure_peaks(checks.peak_seconds())),
        host_(std::make_shared<checking::Host>(context)),
        ahead_(std::make_shared<checking::PlansAhead>()) {
    set_device(json_, context.device(), &peaks_);
    if (checks.vendors) json_["libraries"] = vendor::versions();
    json_["compiled_at_once"] = ahead_->most_at_once();
    json_["results"] = Json::array();
  }

  const Device::Peaks& peaks() const { return peaks_; }
  const Tally& tally() const { return tally_; }

  // Compiles the device text of the first of these problems, and returns how many they are.
  std::size_t plan(std::span<const Problem> problems) {
    if (context_.impl()->kind() == devices::DeviceKind::cpu) return problems.size();
    std::vector<checking::Planned> planned;
    for (const Problem& problem : problems) {
      planned.push_back({problem, {}});
      if (foreign_solver(checks_.input.choice.solver, problem).empty()) try {
          planned.back().options = options_for(problem);
        } catch (const Error&) {  // a refusal, when its turn comes
        }
    }
    const std::size_t count = ahead_->make(context_, planned, [] { return interrupted(); });
    json_["compiled_at_once"] = ahead_->most_at_once();
    stop_if_interrupted();
    return count;
  }

  void measure_problem(const Problem& problem, const Table* table) {
    // A solver of another operation is nothing to compare with.
    const std::string foreign = foreign_versus(problem);
    if (table != nullptr) fmt::print("{}\n", to_text(problem));
    const auto report = [&](MeasureResult result) {
      if (!foreign.empty()) result.versus = {.solver = checks_.versus, .status = Status::refused, .reason = foreign};
      look_at_peaks(result);
      json_["results"].push_back(to_json(problem, result));
      reported_.emplace_back(problem, result);
      const bool another_failed = (result.versus && result.versus->status == Status::failed) ||
                                  (result.prepared && result.prepared->status == Status::failed);
      tally_.count(another_failed ? Status::failed : result.status);
      if (table != nullptr) table->print(result);
      stop_if_interrupted();
    };
    const auto serve = [&] { checking::measure(context_, problem, peaks_, options_for(problem), report); };
    serve_or_refuse<MeasureResult>(checks_.input.choice.solver, problem, serve, report);
  }

 private:
  std::string foreign_versus(const Problem& problem) const {
    return checks_.versus.empty() ? "" : foreign_solver(checks_.versus, problem);
  }

  checking::MeasureOptions options_for(const Problem& problem) const {
    return {.solver = solver_options(checks_.input.choice, problem.operation_name()),
            .versus = foreign_versus(problem).empty() ? checks_.versus : "",
            .vendors = checks_.vendors,
            .also_prepared = checks_.also_prepared,
            .budget_seconds = checks_.budget,
            .seed = checks_.input.seed,
            .host = host_,
            .ahead = ahead_};
  }

  // Faster than the floor: the device was slower when its peaks were measured than now. They are measured again, and
  // the higher ones count for all results of the report. Not so where other units than those of fp32 multiply-adds
  // passed these, which no second look changes, and not once it has often changed nothing.
  void look_at_peaks(MeasureResult& result) {
    if (result.status != Status::ok) return;
    set_floor(result, peaks_);
    if (result.seconds.median >= result.floor_seconds || looks_left_ == 0) return;
    if (!result.memory_binds && !result.uses_only_fma) return;
    const Device::Peaks again = context_.impl()->measure_peaks(checks_.peak_seconds());
    if (again.tflops <= peaks_.tflops && again.gbps <= peaks_.gbps) --looks_left_;
    peaks_.tflops = std::max(peaks_.tflops, again.tflops), peaks_.gbps = std::max(peaks_.gbps, again.gbps);
    json_["device"]["peak_tflops"] = peaks_.tflops;
    json_["device"]["peak_gbps"] = peaks_.gbps;
    set_floor(result, peaks_);
    for (std::size_t i = 0; i < reported_.size(); ++i) {
      auto& [problem, earlier] = reported_[i];
      if (earlier.status != Status::ok) continue;
      set_floor(earlier, peaks_);
      json_["results"][i] = to_json(problem, earlier);
    }
  }

  const Checks& checks_;
  const Context& context_;
  Json& json_;
  Device::Peaks peaks_;
  int looks_left_ = 3;
  std::shared_ptr<checking::Host> host_;
  std::shared_ptr<checking::PlansAhead> ahead_;
  std::vector<std::pair<Problem, MeasureResult>> reported_;  // as in the report
  Tally tally_;
};

int run_bench(const Checks& checks, Json& json, const Keep& keep) {
  const std::vector<Problem> problems = read_problems(checks.input);
  if (!checks.versus.empty()) require_solver_for(checks.versus, problems);
  const Context context(context_options(checks.common));
  Benching benching(checks, context, json);
  const bool has_pixels = std::any_of(problems.begin(), problems.end(),
                                      [](const Problem& problem) { return problem.operation_name() == "filter2d"; });
  const Table table(has_pixels, checks.also_prepared, checks.versus);
  const bool print = prints(checks.common);
  if (print) {
    fmt::print("{} ({}): {:.3f} TFLOP/s of fp32 multiply-adds and {:.1f} GB/s of copying, measured\n",
               context.device().id, context.device().name, benching.peaks().tflops, benching.peaks().gbps);
    table.print_head();
  }
  // The next problem may exhaust the machine's memory. Of a long list a report each second will do: writing one to the
  // disk may take longer than a problem.
  std::optional<std::chrono::steady_clock::time_point> kept;
  const auto keep_now_and_then = [&](std::size_t done) {
    const auto now = std::chrono::steady_clock::now();
    if (done == 0 || (kept && now - *kept < std::chrono::seconds(1))) return;
    keep();
    kept = now;
  };
  std::size_t planned = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    stop_if_interrupted();
    keep_now_and_then(i);
    if (i == planned) planned += benching.plan(std::span(problems).subspan(i));
    benching.measure_problem(problems[i], print ? &table : nullptr);
  }
  if (print && !checks.versus.empty())
    fmt::print("vs: {}, and the ratio of its time to the solver's; the median of neighbouring runs, in turn\n",
               checks.versus);
  return benching.tally().exit_status();
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
      ->check(not_empty())
      ->check(known_words(with_solver_ids({})));
  command->add_flag("--vendor", checks->vendors,
                    "time other libraries, too, where they are found: cuDNN and cuBLAS, which choose by timing");
  command
      ->add_flag("--also-prepared", checks->also_prepared,
                 "time each once more with what it reads prepared, where it has such forms")
      ->excludes("--prepared");
  command->callback([checks, &body] {
    body = [checks] {
      return with_growing_report(checks->common.json, "omniconv-bench/1",
                                 [&](Json& json, const Keep& keep) { return run_bench(*checks, json, keep); });
    };
  });
}

}  // namespace omniconv::cli
