// Products of matrices in the study's rungs: what gemm/rungs and conv2d/rungs share.
#pragma once

#include <memory>

#include "devices/device.h"
#include "devices/sequence.h"
#include "operations/rungs/rungs.h"

namespace omniconv::operations {

// rung_products.kernel has the formula. All f32 and row-major; lengths in elements.
struct RungProduct {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t lda = 0, ldb = 0, ldc = 0;
  std::int64_t batch = 1, batch_a = 0, batch_b = 0, batch_c = 0;
  std::int64_t depth = 1, depth_a = 0, depth_b = 0;  // products of so many matrices are added up
  bool accumulates = false;
};

// Bytes of local memory of a group.
std::int64_t rung_product_bytes(const RungTile& tile);

// What a multiply-add of a product takes, in multiply-adds at the peak: a compute unit of a GPU makes 128 of them while
// it loads 32 numbers, of which each takes 1 + 1 / work.
inline double rung_product_cost(const RungTile& tile) {
  return 1 + 4 * (1 + 1 / static_cast<double>(tile.work));
}

class RungProducts {
 public:
  RungProducts(devices::Device& device, const RungTile& tile, bool transpose_a, bool transpose_b);
  double compile_seconds() const { return program_->compile_seconds(); }
  void append(devices::Sequence& sequence, const RungProduct& product, const Operand& a, const Operand& b,
              const Operand& c, const Scalar& alpha = 1) const;

 private:
  RungTile tile_;
  std::shared_ptr<devices::Program> program_;
};

}  // namespace omniconv::operations
