// One tile of a pair's magnitudes on one CPU thread. Both sums of a pixel are made while its rows are in the cache, so
// that the image is read once and nothing but the result is written.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "operations/filter2d/vector/gradient.h"
#include "operations/filter2d/vector/tile_filter.h"
#include "operations/filter2d/weights.h"

namespace omniconv::kernels {

// Where a run of magnitudes writes. `stream`: past the caches, where rows of f32 begin on cache lines.
struct MagnitudeOutput {
  std::byte* data;  // of output row `first`
  std::int64_t stride_bytes, first;
  bool stream;
};

// Any pair: each kernel by a TileFilter of its own. Real is the accumulating type.
template <typename Real>
class PairTiles {
 public:
  // x_rows_first, y_rows_first: that kernel has rank one and is filtered along rows first.
  PairTiles(const Filter2dTask& task, bool x_rows_first, bool y_rows_first);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  Tiling tiling(std::int64_t rows, int threads) const;
  void run(const RowWindow& input, const MagnitudeOutput& output, const Tile& tile, std::byte* workspace) const;

 private:
  using Kernel = std::variant<TileFilter<float>, TileFilter<double>>;
  static Kernel make_kernel(const Filter2dTask& task, const Weights& weights, bool rows_first);

  Filter2dProblem problem_;
  Kernel x_, y_;
  bool exact_;
  Finish finish_;
  std::int64_t rows_at_once_, block_elements_, pitch_, sums_bytes_, workspace_bytes_;
};

extern template class PairTiles<float>;
extern template class PairTiles<double>;

// The pair as central differences of bytes, if that is what it is and their magnitudes have the promised bits.
std::optional<DifferencePair> difference_pair(const Filter2dTask& task);

class DifferenceTiles {
 public:
  DifferenceTiles(const Filter2dTask& task, const DifferencePair& pair);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }
  Tiling tiling(std::int64_t rows, int threads) const;
  void run(const RowWindow& input, const MagnitudeOutput& output, const Tile& tile, std::byte* workspace) const;

 private:
  struct Buffers;
  void gather(const RowWindow& input, std::int64_t row, int rows, std::int64_t element, std::int64_t elements,
              Buffers& buffers) const;
  void store(const Differences& differences, const MagnitudeOutput& output, std::byte* to,
             const Buffers& buffers) const;

  Filter2dTask task_;
  DifferencePair pair_;
  Finish finish_;
  bool rounded_;  // to u8, without scale and bias
  std::int64_t chunk_elements_, row_pitch_, real_pitch_, workspace_bytes_;
};

}  // namespace omniconv::kernels
