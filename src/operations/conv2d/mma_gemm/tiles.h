// The choice of tiles of conv2d/mma_gemm: what they make, what they need of a device, and what a run takes. No device
// text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "operations/conv2d/implicit_gemm/products.h"
#include "operations/split/numbers.h"

namespace omniconv::operations::mma_gemm {

using implicit_gemm::PixelProduct;
using split_gemm::Numbers;
using split_gemm::numbers_of;

constexpr std::int64_t scan_group = 256;

// Of rows by columns; of products a stage; of a warp; and groups that share a compute unit.
struct WarpTile {
  std::int64_t m = 0, n = 0, k = 0, warp_m = 0, warp_n = 0, resident = 1, parts = 1, merged = 0;

  std::int64_t warps() const { return m / warp_m * (n / warp_n); }
  std::int64_t group() const { return 32 * warps(); }
  std::int64_t local_bytes(const Numbers& numbers) const { return 2 * (m + n) * k * 2 * numbers.planes(); }
};
std::span<const Tunable> warp_tunables();
Tuning tuning_of(const WarpTile& tile);
// Of those that the choice is among.
std::int64_t least_local_bytes(const Numbers& numbers);

// Groups that look for the largest of so many elements.
inline std::int64_t scan_groups(std::int64_t elements) {
  constexpr std::int64_t of_item = 64, most = 264;
  return std::clamp<std::int64_t>(divide_up(elements, scan_group * of_item), 1, most);
}

inline PixelProduct pixels_of(const Conv2dProblem& problem, const WarpTile& tile) {
  return PixelProduct(problem, tile.merged != 0);
}

// What a pass multiplies and makes, as one product for each of a batch: groups of channels, and classes of pixels.
struct Work {
  Work(const Conv2dProblem& problem, const WarpTile& tile);

  std::int64_t first = 0, second = 0, out = 0;  // elements of the operands and of the result
  std::int64_t m = 0, n = 0, k = 0, batch = 1;  // k of filters alone
};

// Samples of the operands are enough, where a second launch may make the result again. By loops they are of small
// arrays too, so that tests have them.
split_gemm::Sampling sampling_of(const Conv2dProblem& problem, const devices::Device& device, const Work& work);

// Stages of the longest sum, before it is cut into parts; pixels of a part of filters' sums; work groups of a launch.
std::int64_t stages_of(const Conv2dProblem& problem, const WarpTile& tile);
std::int64_t part_pixels(const Conv2dProblem& problem, const WarpTile& tile);
std::int64_t groups_of(const Conv2dProblem& problem, const WarpTile& tile);

struct Workspace : split_gemm::Sections {
  Workspace(const Conv2dProblem& problem, const WarpTile& tile);

  std::int64_t maxima = 0, largest = 0, panel = 0, parts = 0, panel_chunks = 0;
};

// Of a run, in multiply-adds at the device's peak.
double cost_of(const Conv2dProblem& problem, const devices::Device& device, const WarpTile& tile);
// The cheapest, or exactly the request's tuning; or why there is none.
std::variant<WarpTile, std::string> choose_tile(const Conv2dProblem& problem, const devices::Device& device,
                                                const SolverOptions& request);

}  // namespace omniconv::operations::mma_gemm
