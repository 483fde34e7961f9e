#include "operations/rungs/products.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/checked.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {

std::int64_t rung_product_bytes(const RungTile& tile) {
  return tile.is_naive() ? 0 : std::min(tile.m, tile.n) * (tile.m + tile.n + 2) * 4;
}

RungProducts::RungProducts(devices::Device& device, const RungTile& tile, bool transpose_a, bool transpose_b)
    : tile_(tile) {
  std::vector<devices::Definition> definitions = tile.definitions();
  definitions.push_back({"TRANSPOSED_A", transpose_a ? "1" : "0"});
  definitions.push_back({"TRANSPOSED_B", transpose_b ? "1" : "0"});
  program_ = device.build(std::string(kernels::rung_tiles()) + std::string(kernels::rung_products()), definitions);
}

void RungProducts::append(devices::Sequence& sequence, const RungProduct& product, const Operand& a, const Operand& b,
                          const Operand& c, const Scalar& alpha) const {
  const std::int64_t tiles = checked_multiply(divide_up(product.m, tile_.m), divide_up(product.n, tile_.n),
                                              "the tiles of a matrix"),
                     all = checked_multiply(tiles, product.batch, "the tiles of a batch");
  launch_groups(all, [&](std::int64_t first, std::int64_t groups) {
    const std::array<devices::KernelArgument, 21> arguments = {a.buffer.impl().get(),
                                                               a.offset_bytes / 4,
                                                               b.buffer.impl().get(),
                                                               b.offset_bytes / 4,
                                                               c.buffer.impl().get(),
                                                               c.offset_bytes / 4,
                                                               product.m,
                                                               product.n,
                                                               product.k,
                                                               product.lda,
                                                               product.ldb,
                                                               product.ldc,
                                                               product.batch_a,
                                                               product.batch_b,
                                                               product.batch_c,
                                                               product.depth,
                                                               product.depth_a,
                                                               product.depth_b,
                                                               std::int32_t{product.accumulates ? 1 : 0},
                                                               first,
                                                               alpha};
    sequence.launch(program_, "rung_product", {{groups * tile_.group()}, {tile_.group()}}, arguments);
  });
}

}  // namespace omniconv::operations
