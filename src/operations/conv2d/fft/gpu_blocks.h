// How a run is cut on GPUs. Tiles are taken in blocks; of each block the inputs are transformed into matrices, one for
// each bin and group, which one batched product multiplies with those of the filters. Their numbers are complex, real
// parts beside imaginary ones; a filter stands in its matrix with all that a part is multiplied by, so that the
// products are of real matrices:
//
//   m[tile, 2 target] = v[tile, 2 source] * u[2 source, 2 target]
//
// Backward to the filter the products are those of all parts, of which the way back takes its own, and add up the tiles
// of both images, those of one block after the other's:
//
//   g[2 target, 2 source] += m[tile, 2 target]' * v[tile, 2 source]
//
// Groups of one channel and one filter, but to the filter, have neither blocks nor products: a kernel of their own.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "operations/conv2d/fft/fft.h"
#include "operations/gemm/gemm.h"

namespace omniconv::operations {

inline constexpr std::array<std::int64_t, 4> fft_gpu_sides = {16, 32, 64, 128};

// What a group of work items transforms at once, in its local memory; each line of a tile by one work item.
struct FftGpuGroup {
  FftGpuGroup(std::int64_t side, const devices::Device& device);

  std::int64_t side, entries;  // entries: tiles of a channel
  // Groups of a compute unit, by their registers; of the kernels that transform filters, or multiply by them.
  std::int64_t resident, resident_of_filters;
  bool of_launch;  // whether launches bring the local memory

  std::int64_t items() const { return entries * side / 2; }
  std::int64_t pitch() const;  // numbers of local memory from a tile to the next
  std::int64_t local_bytes() const { return 4 * entries * pitch(); }
};

// Tiles [first, first + count).
struct FftGpuBlock {
  std::int64_t first, count;
  bool adds;  // its products to those of the blocks before

  std::pair<std::int64_t, bool> product() const { return {count, adds}; }  // that it takes
};

class FftGpuBlocks {
 public:
  // What a plan takes under a workspace limit (negative: none), or the least that will do; or why there is none. Tiles
  // of a block at most, of which 0 leaves the number to the memory that they take.
  static std::variant<FftGpuBlocks, std::string> cut(const Conv2dProblem& problem, std::int64_t side,
                                                     const DevicePointer& device, std::int64_t tile_limit,
                                                     std::int64_t workspace_limit, bool prepared_filters);

  FftShape shape;
  FftGpuGroup group;
  bool fused;                // of groups of one channel and one filter
  bool prepared;             // filters come transformed
  std::int64_t tile_limit;   // as the tuning says it
  std::int64_t block_tiles;  // but for the last block
  std::map<std::pair<std::int64_t, bool>, Offer>
      products;  // that blocks take; but to the filter all by one solver and tuning

  std::int64_t blocks() const;
  FftGpuBlock block(std::int64_t i) const;
  void set_block_tiles(std::int64_t most);
  GemmTask product(const FftGpuBlock& block) const;

  // Real numbers of a spectrum's bins, without those that are others' conjugates; of all matrices of a block's source
  // and target, and of the filters'.
  std::int64_t bins() const { return shape.side * shape.side / 2 + 2; }
  std::int64_t input_elements(std::int64_t tiles) const { return matrices() * 2 * shape.source * tiles; }
  std::int64_t target_elements(std::int64_t tiles) const { return matrices() * 2 * shape.target * tiles; }
  std::int64_t filter_elements() const { return matrices() * (fused ? 2 : 4 * shape.source * shape.target); }
  std::int64_t matrices() const { return bins() * shape.groups; }

  // In the workspace: inputs, targets, filters, and what `products` need.
  std::int64_t targets_at() const;
  std::int64_t filters_at() const;
  std::int64_t rest_at() const;
  std::int64_t workspace_bytes() const;

  PreparedFormat format(const Conv2dProblem& problem) const;
  Tuning tuning() const { return {{"tile", shape.side}, {"tiles", tile_limit}}; }
  ErrorBound bound(const Conv2dProblem& problem) const;
  double cost(const Conv2dProblem& problem, const devices::Device& device) const;
  double counted(const Conv2dProblem& problem) const;  // as the choice does

 private:
  FftGpuBlocks(const Conv2dProblem& problem, std::int64_t side, const devices::Device& device, bool prepared_filters);
  double bytes_of_tile() const;  // of the inputs and targets
};

std::span<const Tunable> fft_gpu_tunables();

}  // namespace omniconv::operations
