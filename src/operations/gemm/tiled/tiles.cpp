#include "operations/gemm/tiled/tiles.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "operations/gemm/gpu_text.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

// A part shorter than this is mostly waiting for its first stages.
constexpr std::int64_t least_part_k = 64;
constexpr std::array<std::int64_t, 12> gemm_parts = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

// That of the table, or of one that nobody has measured.
GemmTile tile_of(const Tuning& tuning) {
  GemmTile tile{.m = tuning.at("tile_m"),
                .n = tuning.at("tile_n"),
                .k = tuning.at("tile_k"),
                .quads_m = tuning.at("quads_m"),
                .quads_n = tuning.at("quads_n"),
                .resident = tuning.at("resident"),
                .rate = {0.5, 0.5, 0.5}};
  const auto take_rate_of = [&](const GemmTile& known) {
    if (known.m == tile.m && known.n == tile.n && known.k == tile.k && known.quads_m == tile.quads_m &&
        known.quads_n == tile.quads_n)
      tile.rate = known.rate;
  };
  for (const GemmTile& known : gemm_tiles()) take_rate_of(known);
  take_rate_of(narrow_tile());
  return tile;
}

// Why the kernel has no such tile; empty if it has.
std::string tile_refusal(const GemmTile& tile, const devices::Device& device) {
  constexpr std::int64_t most_quads = 8, most_items = 2048;
  if (tile.m % (16 * tile.quads_m) != 0)
    return fmt::format("tuning tile_m={}: must be a multiple of 16 * quads_m, {}", tile.m, 16 * tile.quads_m);
  if (tile.n % (32 * tile.quads_n) != 0)
    return fmt::format("tuning tile_n={}: must be a multiple of 32 * quads_n, {}", tile.n, 32 * tile.quads_n);
  if (tile.quads_m * tile.quads_n > most_quads)
    return fmt::format(
        "tuning quads_m={} quads_n={}: their product must be at most {}, since a work item has 16 sums for each",
        tile.quads_m, tile.quads_n, most_quads);
  if (tile.resident * tile.group() > most_items)
    return fmt::format("tuning resident={}: at most {} groups of {} work items have registers on a compute unit",
                       tile.resident, most_items / tile.group(), tile.group());
  if (std::string reason = group_refusal(device, tile.group()); !reason.empty()) return "tuning: " + reason;
  if (std::string reason = local_memory_refusal(device, tile.local_bytes()); !reason.empty())
    return "tuning: " + reason;
  return {};
}

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
  // A warp by itself waits in each stage for the others and for memory, and for what it reads of local memory, product
  // by product.
  constexpr double of_stage = 350, of_product = 30, multiply_adds_a_cycle = 128;
  const double alone =
      units * multiply_adds_a_cycle * static_cast<double>(part_k) *
      (static_cast<double>(16 * tile.quads_m * tile.quads_n) + of_product + of_stage / static_cast<double>(tile.k));
  const auto of_round = [&](double together) {
    return round_cost + std::max(units * together * of_group / share_of_rate(together * warps), alone);
  };
  return rounds * of_round(resident) + (rest > 0 ? of_round(rest) : 0);
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

const GemmTile& narrow_tile() {
  static constexpr GemmTile tile = {16, 64, 8, 1, 1, 8, {0.45, 0.40, 0.35}};
  return tile;
}

TiledWork work_of(const GemmTask& task) {
  const GemmProblem& problem = task.problem;
  return {.m = problem.m,
          .n = problem.n,
          .k = problem.k,
          .batch = problem.batch,
          .turned = problem.transpose_b   ? 2u
                    : problem.transpose_a ? 0u
                                          : 1u,
          .bytes = least_bytes(task),
          .stored_bytes = stored_bytes(task)};
}

std::optional<GemmChoice> choice_of(const GemmTile& tile, std::int64_t parts, const TiledWork& work,
                                    const devices::Device& device) {
  GemmChoice choice{.tile = tile};
  choice.part_k = round_up(divide_up(work.k, parts), tile.k);
  choice.parts = divide_up(work.k, choice.part_k);
  if (parts > 1 && (choice.parts < 2 || choice.part_k < least_part_k)) return std::nullopt;
  const double tiles = static_cast<double>(
      checked_multiply(divide_up(work.m, tile.m), divide_up(work.n, tile.n), "the tiles of a matrix"));
  const double groups = tiles * static_cast<double>(work.batch) * static_cast<double>(choice.parts);
  const double units = std::max(device.info().compute_units, 1);
  const double rate = tile.rate[work.turned];
  const double compute = compute_cost(tile, rate, choice.part_k, groups, units), byte = byte_cost(device);
  choice.cost = std::max(compute + (choice.parts == 1 ? byte * work.stored_bytes : 0), byte * work.bytes);
  if (choice.parts == 1) return choice;
  const double partial_bytes = 4.0 * static_cast<double>(work.m) * static_cast<double>(round_up(work.n, 4)) *
                               static_cast<double>(work.batch) * static_cast<double>(choice.parts);
  if (partial_bytes > static_cast<double>(device.info().max_buffer_bytes)) return std::nullopt;
  choice.workspace_bytes = 4 * work.m * round_up(work.n, 4) * work.batch * choice.parts;
  constexpr double worth_it = 1.1;  // a workspace has a price too
  const double launch = (device.facts().has_overlap ? 0.5 : 1) * launch_cost(device);
  choice.cost = worth_it * (choice.cost + launch + 2 * partial_bytes * byte_cost(device));
  return choice;
}

std::vector<GemmTile> tiles_taken_by(const devices::Device& device, std::span<const GemmTile> tiles) {
  const std::int64_t most_items = device.facts().max_group_items;
  const auto taken = [&](const GemmTile& tile) {
    return tile.local_bytes() <= device.info().local_memory_bytes && tile.group() <= most_items;
  };
  std::vector<GemmTile> all;
  std::copy_if(tiles.begin(), tiles.end(), std::back_inserter(all), taken);
  return all;
}

std::int64_t most_quads_for(const devices::Device& device) {
  return device.facts().takes_occupancy ? 8 : 4;
}

GemmChoice choose_tiles(const GemmTask& task, const devices::Device& device, std::int64_t workspace_limit) {
  const TiledWork work = work_of(task);
  GemmChoice best;
  best.cost = std::numeric_limits<double>::infinity();
  const bool splits = device.facts().max_group_items >= combine_group;
  const std::int64_t most_quads = most_quads_for(device);
  for (const GemmTile& tile : tiles_taken_by(device, gemm_tiles())) {
    if (tile.quads_m * tile.quads_n > most_quads) continue;
    for (const std::int64_t parts : gemm_parts) {
      if (parts > 1 && !splits) break;
      const std::optional<GemmChoice> choice = choice_of(tile, parts, work, device);
      if (!choice || choice->cost >= best.cost) continue;
      if (workspace_limit >= 0 && choice->workspace_bytes > workspace_limit) continue;
      best = *choice;
    }
  }
  return best;
}

std::span<const Tunable> tile_tunables() {
  static const std::vector<Tunable> all = {
      {"tile_m", {16, 32, 64, 128, 256}},
      {"tile_n", {32, 64, 128, 256}},
      {"tile_k", {8, 16, 32}},
      {"quads_m", {1, 2, 4}},
      {"quads_n", {1, 2, 4}},
      {"resident", {1, 2, 3, 4, 6, 8, 12, 16}},
      {"parts", {gemm_parts.begin(), gemm_parts.end()}},
  };
  return all;
}

Tuning tuning_of(const GemmChoice& choice) {
  const GemmTile& tile = choice.tile;
  return {{"tile_m", tile.m},        {"tile_n", tile.n},          {"tile_k", tile.k},     {"quads_m", tile.quads_m},
          {"quads_n", tile.quads_n}, {"resident", tile.resident}, {"parts", choice.parts}};
}

std::variant<GemmChoice, std::string> tuned(const Tuning& tuning, const TiledWork& work, const devices::Device& device,
                                            std::int64_t workspace_limit) {
  const GemmTile tile = tile_of(tuning);
  if (std::string reason = tile_refusal(tile, device); !reason.empty()) return reason;
  const std::int64_t parts = tuning.at("parts");
  if (parts > 1 && device.facts().max_group_items < combine_group)
    return fmt::format("tuning parts={}: their sums are added up by groups of {} work items, and the device takes {}",
                       parts, combine_group, device.facts().max_group_items);
  const std::optional<GemmChoice> choice = choice_of(tile, parts, work, device);
  if (!choice || choice->parts != parts)
    return fmt::format(
        "tuning parts={}: each must have at least {} of the {} products, in whole stages of {}, and all their sums be "
        "a buffer",
        parts, least_part_k, work.k, tile.k);
  if (workspace_limit >= 0 && choice->workspace_bytes > workspace_limit)
    return fmt::format("tuning parts={}: their sums take {} bytes of workspace, and the limit is {}", parts,
                       choice->workspace_bytes, workspace_limit);
  return *choice;
}

}  // namespace omniconv::operations
