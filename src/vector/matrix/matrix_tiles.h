// Products on the processor's matrix unit (AMX): an instruction adds up to 16 pairs of bf16 numbers to each of up to
// 16 x 16 sums in f32.
#pragma once

#include <cstdint>

#include "vector/matrix/bfloat_pair.h"

namespace omniconv::kernels {

inline constexpr std::int64_t matrix_side = 16;
inline constexpr std::int64_t matrix_tile = 2 * matrix_side;  // two by two registers of sums

// What multiplies. `model` takes the unit's steps in plain C++, on any processor: for tests.
enum class MatrixUnit { none, processor, model };
// The processor's, where it and the system have one, and nothing else was set.
MatrixUnit matrix_unit();
void set_matrix_unit(MatrixUnit unit);

// sums[i][j] = sum over blocks g, taps t and steps k < depth of the pair at a[g * a_block + taps[t] + i * a_row + 2k]
// times b[g * b_block + t * b_tap + k * b_step + j] (+ sums[i][j] as it was), for i < rows and j < columns, a tile
// after the other; nothing else is read. What a block has under a tap is added at once: its first terms and its second
// ones are two chains of fused multiply-adds from zero on, whose sum is added to what there is. Numbers below the
// normal range count as zeros.
struct MatrixTiles {
  const std::uint16_t* a;  // numbers of bf16; a_block, a_row and taps count them
  const BfloatPair* b;
  const std::int64_t* taps;
  std::int64_t tap_count, blocks, depth;  // depth: at most matrix_side
  std::int64_t a_block, a_row, b_block, b_tap, b_step;
  std::int64_t rows, columns;  // columns: at most matrix_tile
  float* sums;
  std::int64_t ld;  // from row to row
  bool add;
};
void multiply_tiles(const MatrixTiles& tiles);

}  // namespace omniconv::kernels
