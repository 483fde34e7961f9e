// One tile of a box-filtered floating image on one CPU thread. Rows are taken in blocks of r, counted from the output's
// first row: a window of r rows is the end of one block and the beginning of the next, and each has its sums ready
// (M. van Herk, A fast algorithm for local minimum and maximum filters on rectangular and octagonal kernels, 1992).
#pragma once

#include "operations/filter2d/vector/row_source.h"
#include "operations/filter2d/vector/rows.h"
#include "operations/filter2d/vector/tiles.h"
#include "operations/filter2d/weights.h"

namespace omniconv::kernels {

template <typename Real>
class RealBoxFilter {
 public:
  explicit RealBoxFilter(const Filter2dTask& task);  // whose weights are all equal

  // Bytes of workspace of one tile at a time, a multiple of 64.
  std::int64_t workspace_bytes() const { return workspace_bytes_; }

  // The cut of so many output rows for so many threads.
  Tiling tiling(std::int64_t rows, int threads) const;

  // Where a run writes. `stream`: past the caches.
  struct Output {
    std::byte* data;  // of output row `first`
    std::int64_t stride_bytes;
    std::int64_t first;
    bool stream;
  };
  void run(const RowWindow& input, const Output& output, const Tile& tile, std::byte* workspace) const;

 private:
  void write_row(const Real* upper, const Real* lower, const Output& output, const Tile& tile, std::int64_t row,
                 Real* workspace) const;

  Filter2dTask task_;
  std::int64_t reach_;  // elements from the first to the last pixel of a window
  std::int64_t block_elements_, chunk_elements_, pitch_, chunk_pitch_, workspace_bytes_;
  Finish finish_;
};

extern template class RealBoxFilter<float>;
extern template class RealBoxFilter<double>;

}  // namespace omniconv::kernels
