// Rows of an image in host memory, as strips give them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace omniconv {

// Rows [first, first + rows); a row inside is read as it is, even outside the image, one that is not there where the
// border says.
struct RowWindow {
  const std::byte* data;  // of row `first`
  std::int64_t stride_bytes;
  std::int64_t first, rows;

  bool holds(std::int64_t row) const { return row >= first && row < first + rows; }
};

}  // namespace omniconv
