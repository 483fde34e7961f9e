#include "operations/gemm/tiled/tiles.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "operations/gemm/gpu_text.h"

namespace omniconv::operations {
namespace {

// A part shorter than this is mostly waiting for its first stages.
constexpr std::int64_t least_part_k = 64;
constexpr std::array<std::int64_t, 12> part_counts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

// How much of their rate the groups reach that are on a compute unit together: with few warps there are cycles in which
// none can issue.
double share_of_rate(double warps) {
  constexpr double full = 16, lost = 3;
  return std::min(warps / (warps + lost) * (full + lost) / full, 1.0);
}

// Of the groups in multiply-adds at the peak: as many rounds as a compute unit needs that holds `resident` at once.
double compute_cost(const GemmTile& tile, double rate, std::int64_t part_k, double groups, double units) {
  constexpr double round_cost = 3e7;  // first loads and last stores, of all units: a microsecond of an H200's peak
  const auto resident = static_cast<double>(tile.resident), warps = static_cast<double>(tile.group()) / 32;
  const double of_group = static_cast<double>(tile.m * tile.n) * static_cast<double>(part_k) / rate;
  const double of_unit = std::ceil(groups / units), rounds = std::floor(of_unit / resident);
  const double rest = of_unit - rounds * resident;
  double cost = rounds * (round_cost + units * resident * of_group / share_of_rate(resident * warps));
  if (rest > 0) cost += round_cost + units * rest * of_group / share_of_rate(rest * warps);
  return cost;
}

}  // namespace

std::span<const GemmTile> gemm_tiles() {
  // The rates are those measured on an H200 at 4096^3, f32, through CUDA, less what the model knows (README.md). Other
  // devices have others, which nobody has measured.
  static constexpr std::array<GemmTile, 8> tiles = {{
      {256, 128, 8, 4, 2, 1, {0.97, 0.95, 0.91}},
      {128, 128, 8, 4, 2, 2, {0.98, 0.91, 0.87}},
      {128, 128, 8, 2, 2, 2, {0.81, 0.75, 0.74}},
      {64, 128, 8, 2, 2, 3, {0.84, 0.83, 0.66}},
      {64, 64, 8, 2, 2, 6, {0.84, 0.74, 0.65}},
      {64, 32, 8, 2, 1, 8, {0.64, 0.53, 0.50}},
      {32, 64, 8, 1, 2, 8, {0.66, 0.64, 0.54}},
      {32, 32, 16, 1, 1, 12, {0.63, 0.51, 0.46}},
  }};
  return tiles;
}

std::optional<GemmChoice> choice_of(const GemmTile& tile, std::int64_t parts, const GemmTask& task,
                                    const devices::Device& device) {
  const GemmProblem& problem = task.problem;
  GemmChoice choice{.tile = tile};
  choice.part_k = round_up(divide_up(problem.k, parts), tile.k);
  choice.parts = divide_up(problem.k, choice.part_k);
  if (parts > 1 && (choice.parts < 2 || choice.part_k < least_part_k)) return std::nullopt;
  const double groups = static_cast<double>(tiles_of(problem, tile.m, tile.n)) * static_cast<double>(problem.batch) *
                        static_cast<double>(choice.parts);
  const double units = std::max(device.info().compute_units, 1);
  const double rate = tile.rate[problem.transpose_b ? 2 : problem.transpose_a ? 0 : 1];
  choice.cost = std::max(compute_cost(tile, rate, choice.part_k, groups, units), byte_cost(device) * least_bytes(task));
  if (choice.parts == 1) return choice;
  const double partial_bytes = 4.0 * static_cast<double>(problem.m) * static_cast<double>(round_up(problem.n, 4)) *
                               static_cast<double>(problem.batch) * static_cast<double>(choice.parts);
  if (partial_bytes > static_cast<double>(device.info().max_buffer_bytes)) return std::nullopt;
  choice.workspace_bytes = 4 * problem.m * round_up(problem.n, 4) * problem.batch * choice.parts;
  constexpr double worth_it = 1.1;  // a workspace has a price too
  choice.cost = worth_it * (choice.cost + launch_cost(device) + 2 * partial_bytes * byte_cost(device));
  return choice;
}

std::vector<GemmTile> tiles_taken_by(const devices::Device& device, std::span<const GemmTile> tiles) {
  const std::int64_t most_items = device.max_group_items();
  const auto taken = [&](const GemmTile& tile) {
    return tile.local_bytes() <= device.info().local_memory_bytes && tile.group() <= most_items;
  };
  std::vector<GemmTile> all;
  std::copy_if(tiles.begin(), tiles.end(), std::back_inserter(all), taken);
  return all;
}

GemmChoice choose_tiles(const GemmTask& task, const devices::Device& device, std::int64_t workspace_limit) {
  GemmChoice best;
  best.cost = std::numeric_limits<double>::infinity();
  const bool splits = device.max_group_items() >= combine_group;
  // More sums of a work item would be spilled where the compiler is not told that they are worth their registers.
  const std::int64_t most_quads = device.takes_occupancy() ? 8 : 4;
  for (const GemmTile& tile : tiles_taken_by(device, gemm_tiles())) {
    if (tile.quads_m * tile.quads_n > most_quads) continue;
    for (const std::int64_t parts : part_counts) {
      if (parts > 1 && !splits) break;
      const std::optional<GemmChoice> choice = choice_of(tile, parts, task, device);
      if (!choice || choice->cost >= best.cost) continue;
      if (workspace_limit >= 0 && choice->workspace_bytes > workspace_limit) continue;
      best = *choice;
    }
  }
  return best;
}

}  // namespace omniconv::operations
