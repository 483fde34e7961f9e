#include "streaming/host_copy.h"

#include <algorithm>
#include <cstring>

#include "core/checked.h"

namespace omniconv {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t{1} << 17;  // enough to be worth a thread's while

}  // namespace

void HostCopier::copy(HostRows<const std::byte> from, HostRows<std::byte> to, std::int64_t row_bytes,
                      std::int64_t rows) const {
  if (from.stride_bytes == row_bytes && to.stride_bytes == row_bytes) {
    const std::int64_t bytes = rows * row_bytes;
    threads_->parallel_for(divide_up(bytes, piece_bytes), [=](std::int64_t i, int) {
      const std::int64_t first = i * piece_bytes;
      std::memcpy(to.first + first, from.first + first, static_cast<std::size_t>(std::min(piece_bytes, bytes - first)));
    });
    return;
  }
  const std::int64_t rows_of_piece = std::max<std::int64_t>(piece_bytes / std::max<std::int64_t>(row_bytes, 1), 1);
  threads_->parallel_for(divide_up(rows, rows_of_piece), [=](std::int64_t i, int) {
    for (std::int64_t row = i * rows_of_piece; row < std::min(rows, (i + 1) * rows_of_piece); ++row)
      std::memcpy(to.first + row * to.stride_bytes, from.first + row * from.stride_bytes,
                  static_cast<std::size_t>(row_bytes));
  });
}

}  // namespace omniconv
