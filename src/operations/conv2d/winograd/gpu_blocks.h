// How a run is cut on GPUs. Tiles are taken in blocks; of each block the inputs are transformed into matrices, one for
// each point of the interpolation and group, which one batched product multiplies with those of the filters.
//
//   nchw   m[target, tile] = u[source, target]' * v[source, tile]
//   nhwc   m[tile, target] = v[tile, source] * u[source, target]
//
// Backward to the filter the product adds up the tiles of both images, those of one block after the other's:
//
//   nchw   u[target, source] += m[target, tile] * v[source, tile]'
//   nhwc   u[target, source] += m[tile, target]' * v[tile, source]
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "operations/conv2d/winograd/winograd.h"
#include "operations/gemm/gemm.h"

namespace omniconv::operations {

// Tiles [first, first + count), in matrices of `width` tiles.
struct WinogradGpuBlock {
  std::int64_t first, count, width;
  bool adds;  // its products to those of the blocks before

  std::pair<std::int64_t, bool> product() const { return {width, adds}; }  // that it takes
};

class WinogradGpuBlocks {
 public:
  // What a plan takes under a workspace limit (negative: none), or the least that will do; or why there is none. Tiles
  // of a block at most, of which 0 leaves the number to the memory that they take.
  static std::variant<WinogradGpuBlocks, std::string> cut(const Conv2dProblem& problem, WinogradForm form,
                                                          const DevicePointer& device, std::int64_t tile_limit,
                                                          std::int64_t workspace_limit, bool prepared_filters);

  WinogradForm form;
  WinogradShape shape;
  std::int64_t groups;
  bool nhwc, of_filter;      // backward to it
  bool prepared;             // filters come transformed
  std::int64_t tile_limit;   // as the tuning says it
  std::int64_t block_tiles;  // but for the last block
  std::map<std::pair<std::int64_t, bool>, Offer>
      products;  // that blocks take; but to the filter all by one solver and tuning

  std::int64_t blocks() const;
  WinogradGpuBlock block(std::int64_t i) const;
  void set_block_tiles(std::int64_t most);
  GemmTask product(const WinogradGpuBlock& block) const;
  std::int64_t width() const;  // of the widest block

  // Elements of all matrices of a block of source images, of target images, and of the filters'.
  std::int64_t input_elements(std::int64_t width) const { return matrices() * shape.source * width; }
  std::int64_t target_elements(std::int64_t width) const { return matrices() * shape.target * width; }
  std::int64_t filter_elements() const { return matrices() * shape.source * shape.target; }
  std::int64_t matrices() const { return form.products() * groups; }

  // In the workspace: inputs, targets, filters, and what `products` need.
  std::int64_t targets_at() const;
  std::int64_t filters_at() const;
  std::int64_t rest_at() const;
  std::int64_t workspace_bytes() const;

  PreparedFormat format(const Conv2dProblem& problem) const;
  Tuning tuning() const { return {{"tile", of_filter ? form.taps : form.outputs}, {"tiles", tile_limit}}; }
  double chain() const;  // L of the bound
  double cost(const Conv2dProblem& problem, const devices::Device& device) const;

 private:
  WinogradGpuBlocks(const Conv2dProblem& problem, WinogradForm of_form, bool prepared_filters);
  double bytes_of_tile() const;  // of the inputs and targets
};

std::span<const Tunable> winograd_gpu_tunables();

}  // namespace omniconv::operations
