#include "ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/suggest.h"
#include "epochs.h"
#include "labelled.h"
#include "omniconv/error.h"
#include "progress.h"

namespace omniconv::cli {
namespace {

constexpr std::array all_rungs = {Rung::naive, Rung::tiled, Rung::work_per_thread, Rung::own, Rung::vendor};
constexpr std::array<std::int64_t, 5> tiles = {4, 8, 16, 32, 64};
constexpr std::array<std::int64_t, 4> works = {1, 2, 4, 8};

std::vector<std::string_view> rung_names() {
  std::vector<std::string_view> names;
  for (const Rung rung : all_rungs) names.push_back(name(rung));
  return names;
}

Rung parse_rung(const std::string& word) {
  for (const Rung rung : all_rungs)
    if (word == name(rung)) return rung;
  throw bad_input(fmt::format("unknown rung '{}': {}", word, suggest(word, rung_names())));
}

// "16", or "8x32": rows and columns.
std::pair<std::int64_t, std::int64_t> parse_tile(const std::string& text) {
  const auto side = [&](std::string_view part) {
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() ||
        std::find(tiles.begin(), tiles.end(), value) == tiles.end())
      throw bad_input(fmt::format(
          "--tile '{}': rows x columns, or one number for both, are 4, 8, 16, 32 or 64 each, as in 8x32", text));
    return value;
  };
  const std::size_t at = text.find('x');
  const std::int64_t rows = side(std::string_view(text).substr(0, at));
  return {rows, at == std::string::npos ? rows : side(std::string_view(text).substr(at + 1))};
}

// One of the ladder's trainings.
struct Step {
  RungOptions rungs = {};
  std::string reason = {};  // why there is none
  double epoch_seconds = 0, accuracy = 0;
  // Of an epoch, by kind of operation and what it does, in the order of a step.
  std::vector<std::pair<std::string, double>> operations = {};

  std::string tile() const {
    return has_tile() ? fmt::format("{}x{}", rungs.tile_rows, rungs.tile_columns) : std::string();
  }
  bool has_tile() const { return rungs.rung == Rung::tiled || rungs.rung == Rung::work_per_thread; }
  std::int64_t work() const { return rungs.rung == Rung::work_per_thread ? rungs.work_per_thread : 1; }
  double seconds_of(const std::string& kind) const {
    const auto found =
        std::find_if(operations.begin(), operations.end(), [&](const auto& one) { return one.first == kind; });
    return found == operations.end() ? -1 : found->second;
  }
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// "conv2d backward-data": the problem's first word names the operation, but of convolutions, which begin with none.
std::string kind_of(const NetworkStep& step) {
  const std::string operation(step.solver.substr(0, step.solver.find('/')));
  return step.what.starts_with(operation) ? step.what : operation + " " + step.what;
}

// One epoch of a batch, which is no part of the training: while it runs, some devices compile what is launched for the
// first time.
void take_first_step(Network& network, const Ladder& ladder) {
  Dataset one = ladder.dataset;
  one.train.count = network.options().batch;
  one.train.pixels.resize(static_cast<std::size_t>(one.train.count * one.image_bytes()));
  one.train.labels.resize(static_cast<std::size_t>(one.train.count));
  TrainingOptions options = ladder.training;
  options.epochs = 1, options.validation = options.early_stop = 0;
  train(network, one, options, {});
}

void train_on(const Ladder& ladder, Step& step) {
  NetworkOptions options = ladder.network;
  options.rungs = step.rungs;
  Network network(ladder.context, ladder.model, options);
  take_first_step(network, ladder);
  network.initialise(ladder.seed);
  std::vector<double> seconds;
  std::int64_t steps = 0;
  ProgressBar bar(read_environment().progress && ladder.prints, 1);
  TrainingHooks hooks = hooks_of(bar);
  hooks.epoch = [&](const EpochReport& report) {
    bar.clear();
    seconds.push_back(report.seconds), steps = report.steps;
    if (ladder.prints) print_epoch(report, ladder.training.epochs);
    return !interrupted();
  };
  train(network, ladder.dataset, ladder.training, hooks);
  bar.clear();
  if (interrupted()) throw Error(ErrorKind::interrupted, "interrupted: a ladder keeps nothing of its trainings");
  step.epoch_seconds = median_of(seconds);
  step.accuracy = evaluate(network, ladder.dataset, ladder.dataset.test, ladder.training.chunk).accuracy();
  // Several runs in one submission hide what a short one costs; long ones need not.
  constexpr double long_step = 0.1;
  const std::vector<double> measured =
      step.epoch_seconds > long_step * static_cast<double>(steps) ? network.measure(1) : network.measure();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const std::string kind = kind_of(network.steps()[i]);
    const double of_epoch = measured[i] * static_cast<double>(steps);
    const auto found = std::find_if(step.operations.begin(), step.operations.end(),
                                    [&](const auto& one) { return one.first == kind; });
    if (found == step.operations.end())
      step.operations.emplace_back(kind, of_epoch);
    else
      found->second += of_epoch;
  }
}

// Of all rungs, in the order in which the first that has it does.
std::vector<std::string> kinds_of(const std::vector<Step>& steps) {
  std::vector<std::string> kinds;
  for (const Step& step : steps)
    for (const auto& [kind, seconds] : step.operations)
      if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  return kinds;
}

void print_ladder(const std::vector<Step>& steps) {
  std::vector<std::vector<std::string>> table;
  const auto add = [&](const std::string& what, const auto& cell) {
    std::vector<std::string>& row = table.emplace_back(1, what);
    for (const Step& step : steps)
      if (step.reason.empty()) row.push_back(cell(step));
  };
  add("", [](const Step& step) { return std::string(name(step.rungs.rung)); });
  add("tile", [](const Step& step) { return step.has_tile() ? step.tile() : "-"; });
  add("results of a work item",
      [](const Step& step) { return step.rungs.rung < Rung::own ? fmt::format("{}", step.work()) : "-"; });
  add("seconds an epoch", [](const Step& step) { return fmt::format("{:.3f}", step.epoch_seconds); });
  const Step& first = steps.front();
  add("speed-up over naive", [&](const Step& step) {
    return first.reason.empty() ? fmt::format("{:.2f}", first.epoch_seconds / step.epoch_seconds) : "-";
  });
  add("test accuracy", [](const Step& step) { return fmt::format("{:.2f} %", 100 * step.accuracy); });
  for (const std::string& kind : kinds_of(steps))
    add(kind, [&](const Step& step) {
      const double seconds = step.seconds_of(kind);
      return seconds < 0 ? "-" : fmt::format("{:.5f}", seconds);
    });
  fmt::print("\n");
  print_table(table);
  fmt::print("operations: seconds an epoch, each timed by itself\n");
  for (const Step& step : steps)
    if (!step.reason.empty()) fmt::print("{}: left out: {}\n", name(step.rungs.rung), step.reason);
}

Json json_of_step(const Step& step, const Step& first) {
  Json json = {{"rung", name(step.rungs.rung)}};
  if (step.has_tile()) json["tile"] = step.tile();
  if (step.rungs.rung < Rung::own) json["work"] = step.work();
  if (!step.reason.empty()) {
    json["reason"] = step.reason;
    return json;
  }
  json["seconds_an_epoch"] = step.epoch_seconds;
  if (first.reason.empty()) json["speed_up"] = first.epoch_seconds / step.epoch_seconds;
  json["accuracy"] = step.accuracy;
  json["operations"] = Json::object();
  for (const auto& [kind, seconds] : step.operations) json["operations"][kind] = seconds;
  return json;
}

}  // namespace

void add_rungs(CLI::App& command, RungWords& words) {
  command
      .add_option("--rung", words.rung,
                  "which kernels compute: a classic study's, on OpenCL and CUDA devices, our own, or cuDNN's [own]")
      ->type_name("naive|tiled|work-per-thread|own|vendor")
      ->check(known_words(rung_names()));
  command.add_option("--tile", words.tile, "of the rungs tiled and work-per-thread: results of a group [16]")
      ->type_name("T|MxN")
      ->check(known_words({"4", "8", "16", "32", "64"}));
  command.add_option("--work-per-thread", words.work, "of the rung of that name: results of a work item [4]")
      ->type_name("1|2|4|8")
      ->check(known_words({"1", "2", "4", "8"}))
      ->check(whole_number(1, 8));
  command.add_flag("--ladder", words.ladder, "train anew on each rung, and show them side by side");
}

RungOptions parse_rungs(const RungWords& words) {
  RungOptions options;
  if (words.ladder && !words.rung.empty())
    throw bad_input("--rung beside --ladder, which trains on all of them: leave one out");
  if (!words.rung.empty()) options.rung = parse_rung(words.rung);
  const bool has_work = words.ladder || options.rung == Rung::work_per_thread;
  if (!words.tile.empty()) {
    if (!has_work && options.rung != Rung::tiled)
      throw bad_input(fmt::format("--tile {}: the rung {} has no tiles: it is of tiled and work-per-thread", words.tile,
                                  name(options.rung)));
    std::tie(options.tile_rows, options.tile_columns) = parse_tile(words.tile);
  }
  if (words.work != 0) {
    if (!has_work)
      throw bad_input(fmt::format("--work-per-thread {}: it is of the rung work-per-thread, not of {}", words.work,
                                  name(options.rung)));
    if (std::find(works.begin(), works.end(), words.work) == works.end())
      throw bad_input(fmt::format("--work-per-thread {}: must be 1, 2, 4 or 8", words.work));
    options.work_per_thread = words.work;
  }
  return options;
}

std::string print(const RungOptions& options) {
  const bool is_last = options.rung == Rung::work_per_thread;
  std::string text(name(options.rung));
  if (is_last || options.rung == Rung::tiled)
    text += fmt::format(" --tile {}x{}", options.tile_rows, options.tile_columns);
  return is_last ? text + fmt::format(" --work-per-thread {}", options.work_per_thread) : text;
}

void climb(const Ladder& ladder, Json& json) {
  if (ladder.context.device().id.starts_with("cpu"))
    throw bad_input(
        fmt::format("--ladder: its rungs are kernels of OpenCL and CUDA devices, and {} is neither: "
                    "--device opencl",
                    ladder.context.device().id));
  // What was asked for, and not what the device lacks, is no reason to leave a rung out.
  if (ladder.network.precision != Precision::f32)
    throw bad_input("--ladder: its rungs are kernels of f32: leave --precision out");
  const RungOptions& tile = ladder.network.rungs;
  if (tile.tile_rows % tile.work_per_thread != 0)
    throw bad_input(
        fmt::format("--work-per-thread {}: must divide the {} rows of a tile", tile.work_per_thread, tile.tile_rows));
  const Model& model = ladder.model;
  json["device"] = describe(ladder.context.device());
  json["model"] = model.name, json["parameters"] = model.parameters();
  json["dataset"] = describe(ladder.dataset, true);
  if (ladder.prints)
    fmt::print("{}: {} parameters, on {}\n{}\n\n", model.name, model.parameters(), ladder.context.device().id,
               print(ladder.dataset, true));
  std::vector<Step> steps;
  json["ladder"] = Json::array();
  for (const Rung rung : all_rungs) {
    Step& step = steps.emplace_back(Step{.rungs = ladder.network.rungs});
    step.rungs.rung = rung;
    if (ladder.prints) fmt::print("{}\n", name(rung));
    try {
      train_on(ladder, step);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      step.reason = error.what();
      if (ladder.prints) fmt::print("left out: {}\n", error.what());
    }
    json["ladder"].push_back(json_of_step(step, steps.front()));
  }
  if (std::all_of(steps.begin(), steps.end(), [](const Step& step) { return !step.reason.empty(); }))
    throw bad_input(fmt::format("--ladder: no rung serves: {}", steps.front().reason));
  if (ladder.prints) print_ladder(steps);
}

}  // namespace omniconv::cli
