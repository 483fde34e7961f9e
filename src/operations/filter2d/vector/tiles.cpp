#include "operations/filter2d/vector/tiles.h"

#include <algorithm>

namespace omniconv::kernels {

std::int64_t block_elements_for(std::int64_t rows_kept, std::int64_t element_bytes, std::int64_t elements) {
  constexpr std::int64_t kept_bytes = 128 * 1024;  // of a core's second-level cache, with room for the image rows
  constexpr std::int64_t least = 512, granule = 64;
  const std::int64_t fitting = kept_bytes / (rows_kept * element_bytes) / granule * granule;
  return std::min(elements, std::max(least, fitting));
}

std::int64_t band_rows_for(std::int64_t rows, std::int64_t r, int threads) {
  const std::int64_t share = rows / (std::int64_t{4} * threads) + 1;
  const std::int64_t least = std::max<std::int64_t>(8, 2 * r);
  return std::clamp<std::int64_t>(share, std::min(least, rows), std::max<std::int64_t>(least, 64));
}

}  // namespace omniconv::kernels
