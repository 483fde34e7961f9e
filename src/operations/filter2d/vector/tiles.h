// How a filter's output is cut for the CPU: bands of rows for the threads, blocks of columns for the cache.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

struct Tile {
  std::int64_t row, rows;          // of the output, counted from the run's first
  std::int64_t element, elements;  // of an output row, channels counted
};

// Blocks of an output row: where `edge_elements` is set, the first and the last block have so many elements, so that
// the blocks between them read no column outside the image.
struct Tiling {
  std::int64_t rows, elements;             // of the output in all
  std::int64_t band_rows, block_elements;  // of one tile
  std::int64_t edge_elements = 0;          // less than half of `elements`

  std::int64_t inner_blocks() const { return (elements - 2 * edge_elements + block_elements - 1) / block_elements; }
  std::int64_t blocks() const { return inner_blocks() + (edge_elements > 0 ? 2 : 0); }
  std::int64_t count() const { return (rows + band_rows - 1) / band_rows * blocks(); }
  Tile operator[](std::int64_t i) const {
    const std::int64_t row = i / blocks() * band_rows;
    Tile tile{row, row + band_rows < rows ? band_rows : rows - row, 0, elements};
    std::int64_t block = i % blocks();
    if (edge_elements > 0) {
      if (block == 0) return {tile.row, tile.rows, 0, edge_elements};
      if (block == blocks() - 1) return {tile.row, tile.rows, elements - edge_elements, edge_elements};
      --block;
    }
    const std::int64_t end = elements - edge_elements;
    tile.element = edge_elements + block * block_elements;
    tile.elements = tile.element + block_elements < end ? block_elements : end - tile.element;
    return tile;
  }
};

// Columns whose `rows_kept` rows of 4-byte (8-byte) sums and inputs stay in a core's caches.
std::int64_t block_elements_for(std::int64_t rows_kept, std::int64_t element_bytes, std::int64_t elements);
// Bands of which every thread gets several, and in which the r - 1 rows read twice do not weigh. (Where taps make them
// weigh less, a smaller r says so.)
std::int64_t band_rows_for(std::int64_t rows, std::int64_t r, int threads);

}  // namespace omniconv::kernels
