// Products of matrices inside solvers whose transforms are followed by one at every point or bin.
#pragma once

#include <algorithm>
#include <string>

#include "operations/gemm/gemm.h"

namespace omniconv::operations {

// Of those that use fused multiply-adds alone the solver of least cost, with its offer; none where none serves.
struct GpuProduct {
  const GemmSolver* solver = nullptr;
  Offer offer = {};
};
inline GpuProduct best_gpu_product(const GemmTask& task, const DevicePointer& device) {
  GpuProduct best;
  for (const Solver* const solver : gemm_solvers()) {
    if (solver->role() != SolverRole::own) continue;
    const auto* const gemm = static_cast<const GemmSolver*>(solver);
    const Answer answer = gemm->offer(task, device, {});
    const Offer* const offer = answer.offer();
    if (offer == nullptr || !offer->uses_only_fma) continue;
    if (best.solver == nullptr || offer->cost.multiply_adds < best.offer.cost.multiply_adds) best = {gemm, *offer};
  }
  return best;
}

// Blocks of tiles that a run is cut into.
inline constexpr std::int64_t most_tile_blocks = std::int64_t{1} << 16;

// Offers for every product of a cut's blocks, by offer_of(product); empty if there are all, else why there are not.
template <typename Blocks, typename OfferOf>
std::string find_block_products(Blocks& cut, const OfferOf& offer_of) {
  cut.products.clear();
  for (const std::int64_t i : {std::int64_t{0}, std::min<std::int64_t>(1, cut.blocks() - 1), cut.blocks() - 1}) {
    const Answer answer = offer_of(cut.product(cut.block(i)));
    if (answer.offer() == nullptr) return answer.refusal();
    cut.products[cut.block(i).product()] = *answer.offer();
  }
  return {};
}

// The same by the best products, with blocks small enough for a limit of the workspace (negative: none), or of
// `least_tiles`. Tiles that are terms of the products' sums have blocks for their order, whatever the limit.
template <typename Blocks>
std::string choose_block_products(Blocks& cut, const DevicePointer& device, bool sums_tiles, std::int64_t least_tiles,
                                  std::int64_t workspace_limit) {
  constexpr const char* none = "no product of matrices by fused multiply-adds serves its tiles";
  if (sums_tiles) {
    // Each block has the product that is best for it.
    return find_block_products(cut, [&](const GemmTask& task) -> Answer {
      const GpuProduct best = best_gpu_product(task, device);
      if (best.solver == nullptr) return none;
      return best.offer;
    });
  }
  // The product is chosen once: a limit of the workspace leaves its solver and tuning, and so the order of sums.
  const GpuProduct best = best_gpu_product(cut.product(cut.block(0)), device);
  if (best.solver == nullptr) return none;
  const std::string tuning = best.offer.tuning.to_text();
  for (;;) {
    std::string reason = find_block_products(
        cut, [&](const GemmTask& task) { return best.solver->offer(task, device, {.tuning = tuning}); });
    if (!reason.empty()) return reason;
    const bool fits = workspace_limit < 0 || cut.workspace_bytes() <= workspace_limit;
    if (fits || cut.block_tiles <= least_tiles || cut.blocks() > most_tile_blocks / 2) return {};
    cut.set_block_tiles(std::max(cut.block_tiles / 2, least_tiles));
  }
}

}  // namespace omniconv::operations
