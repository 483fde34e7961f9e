// What solvers share whose products are made on matrix units that the instructions of warps feed, whatever they
// multiply: which devices have such units, what tiles may be, and the rounds that these take.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "core/checked.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {

inline bool has_warp_units(const devices::Device& device) {
  return device.facts().compute_capability >= 80;
}

// Why the units are none, or are not as bounds take them to be; empty if they are. OpenCL devices without them have
// loops.
inline std::string warp_units_refusal(const devices::Device& device) {
  if (device.kind() == devices::DeviceKind::cuda && !has_warp_units(device))
    return "multiplies on the matrix units of NVIDIA's compute capability 8.0 and above";
  return device.matrix_units_refusal();
}

// Multiply-adds of 16-bit numbers that a compute unit's matrix units do in a cycle when a warp's instructions feed
// them, and of fp32 numbers that its multiply-add units do. Of 9.0 as measured; of others as NVIDIA states them, with
// the slower figure where boards of a capability differ.
struct UnitRates {
  double matrix, plain;
};
inline UnitRates unit_rates(const devices::Device& device) {
  const int capability = device.facts().compute_capability;
  if (capability == 80) return {1024, 64};
  if (capability == 90) return {1270, 128};
  return {256, 128};
}

// Why a tile cannot be cut into its warps, or a work item cannot hold a warp's sums; empty if both can be. A tile has
// m, n, warp_m and warp_n.
template <typename Tile>
std::string warps_refusal(const Tile& tile) {
  constexpr std::int64_t most_sums = 64;
  if (tile.m % tile.warp_m != 0)
    return fmt::format("tuning tile_m={}: must be a multiple of warp_m, {}", tile.m, tile.warp_m);
  if (tile.n % tile.warp_n != 0)
    return fmt::format("tuning tile_n={}: must be a multiple of warp_n, {}", tile.n, tile.warp_n);
  if (tile.warp_m * tile.warp_n > 32 * most_sums)
    return fmt::format("tuning warp_m={} warp_n={}: their product must be at most {}, since a work item holds {} sums",
                       tile.warp_m, tile.warp_n, 32 * most_sums, most_sums);
  return {};
}
// Why its groups cannot share a compute unit as `resident` says.
template <typename Tile>
std::string resident_refusal(const Tile& tile) {
  constexpr std::int64_t most_items = 2048;
  if (tile.resident * tile.group() <= most_items) return {};
  return fmt::format("tuning resident={}: at most {} groups of {} work items share a compute unit", tile.resident,
                     most_items / tile.group(), tile.group());
}

// Groups that share a compute unit, `resident` by their registers, by its local memory too.
inline std::int64_t resident_groups(const devices::Device& device, std::int64_t resident, std::int64_t local_bytes) {
  constexpr std::int64_t of_group = 1024;  // that the device keeps for each
  const std::int64_t bytes = device.facts().unit_local_memory_bytes;
  return bytes == 0 ? resident : std::clamp<std::int64_t>(bytes / (local_bytes + of_group), 1, resident);
}
// Cycles of so many groups: of rounds of a compute unit with `resident` at once, of_round(how many) each.
template <typename OfRound>
double cycles_of_rounds(const devices::Device& device, std::int64_t groups, std::int64_t resident,
                        const OfRound& of_round) {
  const std::int64_t units = std::max(device.info().compute_units, 1), slots = units * resident, left = groups % slots;
  return static_cast<double>(groups / slots) * of_round(resident) + (left > 0 ? of_round(divide_up(left, units)) : 0);
}

// Of those tiles that refusal_of(tile) lets be, the one of the least cost_of(tile); or why there is none.
template <typename Tile, typename RefusalOf, typename CostOf>
std::variant<Tile, std::string> cheapest_tile(std::span<const Tile> tiles, const RefusalOf& refusal_of,
                                              const CostOf& cost_of) {
  std::optional<Tile> best;
  double least = 0;
  std::string refusal;
  for (const Tile& tile : tiles) {
    if (std::string reason = refusal_of(tile); !reason.empty()) {
      refusal = reason;
      continue;
    }
    const double cost = cost_of(tile);
    if (!best || cost < least) best = tile, least = cost;
  }
  if (!best) return refusal;
  return *best;
}

}  // namespace omniconv::operations
