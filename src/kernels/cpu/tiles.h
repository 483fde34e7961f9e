// How a filter's output is cut for the CPU: bands of rows for the threads, blocks of columns for the cache.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

struct Tile {
  std::int64_t row, rows;          // of the output, counted from the run's first
  std::int64_t element, elements;  // of an output row, channels counted
};

struct Tiling {
  std::int64_t rows, elements;             // of the output in all
  std::int64_t band_rows, block_elements;  // of one tile

  std::int64_t blocks() const { return (elements + block_elements - 1) / block_elements; }
  std::int64_t count() const { return (rows + band_rows - 1) / band_rows * blocks(); }
  Tile operator[](std::int64_t i) const {
    const std::int64_t row = i / blocks() * band_rows, element = i % blocks() * block_elements;
    return {row, row + band_rows < rows ? band_rows : rows - row, element,
            element + block_elements < elements ? block_elements : elements - element};
  }
};

// Columns whose `rows_kept` rows of 4-byte (8-byte) sums and inputs stay in a core's caches.
std::int64_t block_elements_for(std::int64_t rows_kept, std::int64_t element_bytes, std::int64_t elements);
// Bands of which every thread gets several, and in which the r - 1 rows read twice do not weigh.
std::int64_t band_rows_for(std::int64_t rows, std::int64_t r, int threads);

}  // namespace omniconv::kernels
