// Which tiles `tiled` takes for a task, and into how many parts it splits k.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "operations/gemm/gemm.h"
#include "operations/tuning.h"

namespace omniconv::operations {

// The tunables of tiled.kernel, and what the choice knows of them.
struct GemmTile {
  std::int64_t m = 0, n = 0, k = 0, quads_m = 0, quads_n = 0;
  std::int64_t resident = 0;  // groups on a compute unit at once by their registers, which the compiler is told
  // Of the peak, where all compute units are full: where no operand is turned, where a is, and where both or b alone
  // are.
  std::array<double, 3> rate = {};

  std::int64_t group() const { return m / (4 * quads_m) * (n / (4 * quads_n)); }
  // Two stages of both operands in fp32, whose rows may be padded by four elements.
  std::int64_t local_bytes() const { return 2 * 4 * k * (m + n + 8); }
};
std::span<const GemmTile> gemm_tiles();
// Of convolutions alone, for few outputs and short sums.
const GemmTile& narrow_tile();
// Those whose groups and local memory the device takes.
std::vector<GemmTile> tiles_taken_by(const devices::Device& device, std::span<const GemmTile> tiles);

// What is multiplied, as far as the choice goes: matrices of a batch, for which bytes move through memory.
struct TiledWork {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::size_t turned = 0;  // of GemmTile's rates: no operand, a, or b
  double bytes = 0;
  double stored_bytes = 0;  // of these, what moves when sums are made, as far as that is known not to go on beside them
};
TiledWork work_of(const GemmTask& task);

struct GemmChoice {
  GemmTile tile;
  std::int64_t parts = 1;            // of k
  std::int64_t part_k = 0;           // products of a part but for the last: a multiple of the tile's
  std::int64_t workspace_bytes = 0;  // for the sums of the parts
  double cost = 0;                   // in multiply-adds at the device's peak
};
// With these tiles and about so many parts; none where these would be too short, or their sums pass a buffer.
std::optional<GemmChoice> choice_of(const GemmTile& tile, std::int64_t parts, const TiledWork& work,
                                    const devices::Device& device);
inline std::optional<GemmChoice> choice_of(const GemmTile& tile, std::int64_t parts, const GemmTask& task,
                                           const devices::Device& device) {
  return choice_of(tile, parts, work_of(task), device);
}
// Work items of a group that adds up the parts.
constexpr std::int64_t combine_group = 256;
// The cheapest whose workspace keeps to the limit (negative: none), of a device that takes a tile.
GemmChoice choose_tiles(const GemmTask& task, const devices::Device& device, std::int64_t workspace_limit);

// The choice as a tuning: tile_m, tile_n, tile_k, quads_m, quads_n, resident, parts.
Tuning tuning_of(const GemmChoice& choice);
std::span<const Tunable> tile_tunables();
// The choice that a tuning of these is; or why there is none for the work on the device, within the workspace's
// limit (negative: none).
std::variant<GemmChoice, std::string> tuned(const Tuning& tuning, const TiledWork& work, const devices::Device& device,
                                            std::int64_t workspace_limit);

// The most blocks of 4 x 4 sums that are asked of a work item: more would be spilled where the compiler is not told
// that they are worth their registers.
std::int64_t most_quads_for(const devices::Device& device);

// A plan that does as it is told.
std::shared_ptr<const GemmPlanBody> plan_of_tiles(const GemmTask& task, devices::Device& device,
                                                  const GemmChoice& choice);

}  // namespace omniconv::operations
