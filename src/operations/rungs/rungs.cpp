#include "operations/rungs/rungs.h"

#include <fmt/format.h>

#include "operations/gpu_limits.h"

namespace omniconv::operations {

std::vector<devices::Definition> RungTile::definitions() const {
  return {{"RUNG", std::to_string(rung)},
          {"TILE_M", std::to_string(m)},
          {"TILE_N", std::to_string(n)},
          {"WORK", std::to_string(work)}};
}

std::span<const Tunable> rung_tunables() {
  static const std::vector<Tunable> all = {{"rung", {RungTile::naive, RungTile::tiled, RungTile::work_per_thread}},
                                           {"tile_m", {4, 8, 16, 32, 64}},
                                           {"tile_n", {4, 8, 16, 32, 64}},
                                           {"work", {1, 2, 4, 8}}};
  return all;
}

RungTile rung_tile_of(const SolverOptions& request) {
  if (request.tuning.empty()) return {};
  const Tuning tuning = Tuning::parse(request.tuning);
  return {.rung = tuning.at("rung"), .m = tuning.at("tile_m"), .n = tuning.at("tile_n"), .work = tuning.at("work")};
}

std::string rung_refusal(const devices::Device& device, const RungTile& tile, std::int64_t local_bytes) {
  if (device.kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
  if (tile.rung != RungTile::work_per_thread && tile.work != 1)
    return fmt::format("work={}: results of a work item are 1 but of rung {}", tile.work, RungTile::work_per_thread);
  if (tile.m % tile.work != 0) return fmt::format("work={}: must divide the rows of a tile, {}", tile.work, tile.m);
  const std::string of_tile = fmt::format("a tile of {} x {}, {} a work item: ", tile.m, tile.n, tile.work);
  if (const std::string reason = group_refusal(device, tile.group()); !reason.empty()) return of_tile + reason;
  if (local_bytes == 0) return {};
  const std::string reason = local_memory_refusal(device, local_bytes);
  return reason.empty() ? "" : of_tile + reason;
}

Cost rung_cost(const devices::Device& device, double bytes, double multiply_adds, double launches) {
  return {.multiply_adds = launches * launch_cost(device) + multiply_adds + byte_cost(device) * bytes};
}

}  // namespace omniconv::operations
