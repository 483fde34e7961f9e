#include "operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "checking/measure.h"
#include "choice/choose.h"
#include "devices/device.h"
#include "devices/sequence.h"
#include "operations/operation.h"
#include "train/network_state.h"

namespace omniconv::cli {
namespace {

// What an operation could not do without, in seconds.
struct StepFloors {
  double launches = 0, bytes = 0, arithmetic = 0;

  double largest() const { return std::max({launches, bytes, arithmetic}); }
  const char* by() const {
    return launches >= std::max(bytes, arithmetic) ? "launches" : bytes >= arithmetic ? "bytes" : "arithmetic";
  }
};
struct StepWork {
  std::int64_t launches = 0;
  double bytes = 0, operations = 0;  // of the definition
  double least_operations = 0;       // the figures', for a floor; 0 where the peak is none of the units' that do it
  StepWork& operator+=(const StepWork& other) {
    launches += other.launches, bytes += other.bytes, operations += other.operations;
    least_operations += other.least_operations;
    return *this;
  }
};

StepFloors floors_of(const StepWork& work, const devices::Device::Peaks& peaks) {
  return {.launches = static_cast<double>(work.launches) * peaks.launch_seconds,
          .bytes = peaks.gbps > 0 ? work.bytes / (peaks.gbps * 1e9) : 0,
          .arithmetic = peaks.tflops > 0 ? work.least_operations / (peaks.tflops * 1e12) : 0};
}

// Matrix units pass the measured rate, which is that of multiply-adds.
bool multiplies_and_adds(const Network& network, const NetworkStep& step, const operations::Operation& operation,
                         const operations::AnyTask& task) {
  SolverOptions options;
  options.solver = step.solver;
  const choice::Considered found = choice::consider(operation, task, network.context().impl(), options).front();
  return found.serves() && found.answer.offer()->uses_only_fma;
}

// Kernels, copies and fills that an operation is; on the CPU tasks.
std::int64_t launches_of(const Network& network, std::size_t operation) {
  const Network::State& state = network.state();
  Sequence sequence = network.context().make_sequence();
  (network.options().trains ? state.training : state.evaluating.steps)
      .append_one(sequence, operation, state.passing, state.workspace);
  return std::ssize(sequence.impl()->steps());
}

StepWork work_of(const Network& network, std::size_t index) {
  const NetworkStep& step = network.steps()[index];
  const Problem problem = parse_problem(step.problem);
  const operations::Operation& operation = problem.operation();
  const operations::AnyTask task = operation.task(problem, 1);
  const operations::Figures figures = operation.figures(task);
  return {.launches = launches_of(network, index),
          .bytes = checking::moved_bytes(figures, operation.arrays(problem)),
          .operations = figures.operations,
          .least_operations = multiplies_and_adds(network, step, operation, task) ? figures.least_operations : 0};
}

std::vector<std::string> row_of(const Network& network, std::size_t index, const StepWork& work,
                                const StepFloors& floors, double seconds, double share) {
  const NetworkStep& step = network.steps()[index];
  const std::vector<ModelLayer>& layers = network.model().layers;
  return {step.layer < layers.size() ? fmt::format("{} {}", step.layer + 1, layers[step.layer].text()) : "",
          step.what,
          fmt::format("{:.1f}", seconds * 1e6),
          fmt::format("{:.1f} %", 100 * share),
          fmt::format("{:.1f}", floors.largest() * 1e6),
          floors.by(),
          fmt::format("{:.3g}", work.operations / seconds / 1e12),
          fmt::format("{:.0f}", work.bytes / seconds / 1e9),
          std::to_string(work.launches),
          step.solver,
          step.problem};
}

}  // namespace

Json steps_json(const Network& network) {
  Json steps = Json::array();
  for (const NetworkStep& step : network.steps())
    steps.push_back({{"layer", step.layer}, {"what", step.what}, {"problem", step.problem}, {"solver", step.solver}});
  return steps;
}

void report_operations(Network& network, double step_seconds, bool prints, Json& json) {
  json["steps"] = steps_json(network);
  const devices::Device::Peaks peaks = network.context().impl()->measure_peaks(0.2);
  const std::vector<double> seconds = network.measure();
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  double floor = 0;
  StepWork work;
  std::vector<std::vector<std::string>> table = {
      {"layer", "operation", "us", "share", "floor us", "by", "TFLOP/s", "GB/s", "launches", "solver", "problem"}};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const StepWork own_work = work_of(network, i);
    const StepFloors own_floors = floors_of(own_work, peaks);
    Json& own = json["steps"][i];
    own["seconds"] = seconds[i], own["floor_seconds"] = own_floors.largest(), own["floor_by"] = own_floors.by();
    own["bytes"] = own_work.bytes, own["operations"] = own_work.operations, own["launches"] = own_work.launches;
    floor += own_floors.largest(), work += own_work;
    table.push_back(row_of(network, i, own_work, own_floors, seconds[i], seconds[i] / all));
  }
  const StepFloors floors = floors_of(work, peaks);
  json["operations_seconds"] = all, json["floor_seconds"] = floor, json["launches"] = work.launches;
  json["floors"] = {{"launches", floors.launches}, {"bytes", floors.bytes}, {"arithmetic", floors.arithmetic}};
  json["device"]["peak_tflops"] = peaks.tflops, json["device"]["peak_gbps"] = peaks.gbps;
  json["device"]["launch_seconds"] = peaks.launch_seconds;
  if (step_seconds > 0) json["step_seconds"] = step_seconds;
  if (!prints) return;
  fmt::print("\n");
  print_table(table);
  if (step_seconds > 0) fmt::print("a step, all in all: {:.3f} ms\n", step_seconds * 1e3);
  fmt::print(
      "all operations, each by itself: {:.3f} ms; the floors of all: {:.3f} ms\n"
      "floors: {:.3g} ms of launches ({} at {:.3g} us), {:.3g} ms of bytes ({:.3g} MB at {:.0f} GB/s), {:.3g} ms of "
      "arithmetic ({:.3g} GFLOP by multiply-adds at {:.3g} TFLOP/s)\n",
      all * 1e3, floor * 1e3, floors.launches * 1e3, work.launches, peaks.launch_seconds * 1e6, floors.bytes * 1e3,
      work.bytes / 1e6, peaks.gbps, floors.arithmetic * 1e3, work.least_operations / 1e9, peaks.tflops);
}

}  // namespace omniconv::cli
