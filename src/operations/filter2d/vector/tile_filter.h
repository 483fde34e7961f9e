// One tile of a filtered image on one CPU thread: rows are widened once into a ring of buffers that stays in the cache,
// and every pass chains the taps for several output rows at a time. `rows_first` filters each row as it enters the ring
// and chains down the column alone; where the weights are a sum of products of a column and a row, it filters the row
// once for each of them. Where the task's weights say so, the ring holds colours times opacity, and the sums are
// divided by it before they are stored.
#pragma once

#include <vector>

#include "operations/filter2d/vector/dot_rows.h"
#include "operations/filter2d/vector/premultiply.h"
#include "operations/filter2d/vector/row_source.h"
#include "operations/filter2d/vector/rows.h"
#include "operations/filter2d/vector/tiles.h"
#include "operations/filter2d/weights.h"

namespace omniconv::kernels {

// Weights as a product of a column and a row, or as the sum of two.
struct Products {
  int count = 0;
  std::vector<double> columns;  // r x count: those of a row of the kernel side by side
  std::vector<double> rows;     // count x s
};

// Real: float or double, or std::uint8_t for chains of bytes (dot_rows.h), which ask for byte_weights.
template <typename Real>
class TileFilter {
 public:
  // rows_first: the weights have rank one, or are equal and the task is one of premultiplied alpha; not for bytes.
  TileFilter(const Filter2dTask& task, bool rows_first);
  // Rows first, by these factors in place of the weights; not for bytes.
  TileFilter(const Filter2dTask& task, const Products& products);

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
    std::int64_t element = 0;  // of an output row, at which `data` begins
  };
  void run(const RowWindow& input, const Output& output, const Tile& tile, std::byte* workspace) const;

 private:
  struct Buffers;
  const Real* row_in_place(const RowWindow& input, std::int64_t row, const Tile& tile) const;
  Upcoming upcoming_rows(const RowWindow& input, std::int64_t first, const Tile& tile, const Buffers& buffers) const;
  void load_taps(const RowWindow& input, std::int64_t row, const Tile& tile, Real* place) const;
  const Real* source_row(const RowWindow& input, std::int64_t row, const Tile& tile, Real* place) const;
  void fill_ring(const RowWindow& input, std::int64_t base, std::int64_t first, std::int64_t count, const Tile& tile,
                 const Buffers& buffers) const;
  Chain<Real> chain_over(const Tile& tile, const Buffers& buffers) const;
  void chain_and_finish(const Chain<Real>& chain, const Finish& finish, std::byte* to, std::int64_t stride_bytes,
                        const Buffers& buffers) const;
  void filter_row(const Real* from, const Tile& tile, Real* to) const;
  void filter_rows(Chain<Real> chain, const Output& output, const Tile& tile, std::byte* to,
                   const Buffers& buffers) const;

  bool rows_first() const { return products_ > 0; }
  bool premultiplied() const { return task_.weights.alpha_rule == AlphaRule::premultiplied; }

  Filter2dTask task_;
  int products_;                             // of a column and a row, rows first; 0: chains over the taps
  std::vector<Real> row_weights_, weights_;  // of the row pass, and of the chains over the ring
  ByteWeights byte_weights_;                 // instead, of chains of bytes
  std::int64_t ring_rows_, block_elements_, widened_pitch_, ring_pitch_, sum_pitch_;
  std::int64_t tap_step_;           // elements of a widened row from one column of taps to the next
  std::int64_t slack_;              // elements that chains may read past those that they need
  std::int64_t edge_elements_ = 0;  // where inner blocks read image rows in place
  std::int64_t pointers_bytes_, workspace_bytes_;
  Finish finish_;
  Opacity opacity_;
};

extern template class TileFilter<float>;
extern template class TileFilter<double>;
extern template class TileFilter<std::uint8_t>;

}  // namespace omniconv::kernels
