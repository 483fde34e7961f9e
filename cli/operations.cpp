#include "operations.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "checking/measure.h"
#include "devices/device.h"
#include "devices/sequence.h"
#include "operations/operation.h"
#include "train/network_state.h"

namespace omniconv::cli {
namespace {

// As bench would have timed it, but where arrays may lie in caches.
checking::MeasureResult timed(const NetworkStep& step, double seconds, const devices::Device::Peaks& peaks,
                              bool is_gpu) {
  const Problem problem = parse_problem(step.problem);
  const operations::Operation& operation = problem.operation();
  const operations::Figures figures = operation.figures(operation.task(problem, 1));
  checking::MeasureResult result;
  result.solver = step.solver;
  result.seconds.median = seconds;
  result.operations = figures.operations, result.least_operations = figures.least_operations;
  result.bytes = checking::moved_bytes(figures, operation.arrays(problem));
  // Matrix units pass the rate of multiply-adds that is measured of a GPU: there bytes alone are a floor.
  set_floor(result, peaks);
  if (!is_gpu || result.memory_binds || peaks.gbps <= 0) return result;
  result.floor_seconds = result.bytes / (peaks.gbps * 1e9), result.memory_binds = true;
  return result;
}

// Kernels, copies and fills that an operation is; on the CPU tasks.
std::int64_t launches_of(const Network& network, std::size_t operation) {
  const Network::State& state = network.state();
  Sequence sequence = network.context().make_sequence();
  (network.options().trains ? state.training : state.evaluating.steps)
      .append_one(sequence, operation, state.passing, state.workspace);
  return std::ssize(sequence.impl()->steps());
}

}  // namespace

Json steps_json(const Network& network) {
  Json steps = Json::array();
  for (const NetworkStep& step : network.steps())
    steps.push_back({{"layer", step.layer}, {"what", step.what}, {"problem", step.problem}, {"solver", step.solver}});
  return steps;
}

void report_operations(Network& network, bool prints, Json& json) {
  json["steps"] = steps_json(network);
  const devices::Device::Peaks peaks = network.context().impl()->measure_peaks(0.2);
  const std::vector<double> seconds = network.measure();
  double all = 0, floors = 0, bytes = 0, operations = 0;
  std::int64_t launches = 0;
  for (const double one : seconds) all += one;
  std::vector<std::vector<std::string>> table = {
      {"layer", "operation", "us", "share", "floor us", "by", "TFLOP/s", "GB/s", "launches", "solver", "problem"}};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const NetworkStep& step = network.steps()[i];
    const std::vector<ModelLayer>& layers = network.model().layers;
    const checking::MeasureResult result = timed(step, seconds[i], peaks, network.context().device().is_gpu);
    const std::int64_t own_launches = launches_of(network, i);
    Json& own = json["steps"][i];
    own["seconds"] = seconds[i], own["floor_seconds"] = result.floor_seconds, own["bytes"] = result.bytes;
    own["operations"] = result.operations, own["launches"] = own_launches;
    floors += result.floor_seconds, bytes += result.bytes, operations += result.operations, launches += own_launches;
    table.push_back({step.layer < layers.size() ? fmt::format("{} {}", step.layer + 1, layers[step.layer].text()) : "",
                     step.what, fmt::format("{:.1f}", seconds[i] * 1e6),
                     fmt::format("{:.1f} %", 100 * seconds[i] / all), fmt::format("{:.1f}", result.floor_seconds * 1e6),
                     result.memory_binds ? "bytes" : "arithmetic",
                     fmt::format("{:.3g}", result.operations / seconds[i] / 1e12),
                     fmt::format("{:.0f}", result.bytes / seconds[i] / 1e9), std::to_string(own_launches), step.solver,
                     step.problem});
  }
  json["operations_seconds"] = all, json["floor_seconds"] = floors, json["launches"] = launches;
  json["device"]["peak_tflops"] = peaks.tflops, json["device"]["peak_gbps"] = peaks.gbps;
  if (!prints) return;
  fmt::print("\n");
  print_table(table);
  fmt::print(
      "all operations, each by itself: {:.3f} ms, {} launches; floors {:.3f} ms, of {:.3g} GFLOP at {:.3g} "
      "TFLOP/s and {:.3g} MB at {:.0f} GB/s\n",
      all * 1e3, launches, floors * 1e3, operations / 1e9, peaks.tflops, bytes / 1e6, peaks.gbps);
}

}  // namespace omniconv::cli
