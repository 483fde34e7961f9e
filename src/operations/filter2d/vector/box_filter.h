// One tile of a box-filtered integer image on one CPU thread: the sums of r rows of every column are kept, and from one
// output row to the next one row enters them and one leaves. Rows are read where they lie; columns outside the image
// have the sums of the columns that stand for them.
#pragma once

#include <optional>

#include "operations/filter2d/vector/box.h"
#include "operations/filter2d/vector/row_source.h"
#include "operations/filter2d/vector/tiles.h"
#include "operations/filter2d/weights.h"

namespace omniconv::kernels {

// The narrowest type that holds every sum down a column; 64 bits where one along a window passes 2^31 too.
enum class BoxColumn : std::uint8_t { u16, u32, u64 };
BoxColumn box_column(const Filter2dTask& task);

// The quotient that finishes every sum from 0 to `most` as `finish` says, if one is found; `finish` makes bytes.
std::optional<ByteQuotient> byte_quotient(const Finish& finish, std::int64_t most);

template <typename Column>
class BoxFilter {
 public:
  explicit BoxFilter(const Filter2dTask& task);  // whose weights are all equal, whose image is of integers

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
  struct Span;
  struct Buffers;
  Span span_of(const Tile& tile) const;
  Buffers buffers_in(std::byte* workspace) const;
  void fill_outside(const Span& span, const Buffers& buffers) const;

  Filter2dTask task_;
  std::int64_t reach_;  // elements from the first to the last pixel of a window
  std::int64_t block_elements_, column_elements_, constant_bytes_, outside_bytes_, workspace_bytes_;
  bool narrow_;
  Finish finish_;
  std::optional<ByteQuotient> quotient_;
};

extern template class BoxFilter<std::uint16_t>;
extern template class BoxFilter<std::uint32_t>;
extern template class BoxFilter<std::uint64_t>;

}  // namespace omniconv::kernels
