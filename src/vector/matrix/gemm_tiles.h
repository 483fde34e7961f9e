// Tiles: products of a panel of rows and a panel of columns, whose sums stay in registers, and what is done to sums
// before they are stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"
#include "vector/matrix/bfloat_pair.h"

namespace omniconv::kernels {

// The largest tile of the instruction set in use for a matrix of so many rows, and its vectors. Panels of columns are
// whole vectors wide.
struct RegisterTile {
  std::int64_t rows, columns, lanes;
};
RegisterTile register_tile(DataType sums, std::int64_t rows);  // f32 or f64
inline constexpr std::int64_t most_tile_elements = 2048;       // rows * columns on no target exceed it

template <typename Element>
struct GemmPanels {
  const Element* a;  // steps x rows, or in place
  const Element* b;  // steps x columns, rounded up to vectors; at a multiple of 64 bytes
  std::int64_t steps, rows, columns;
  typename SumOf<Element>::Type* sums;  // rows x columns
  std::int64_t ld;
  bool add;  // to what sums hold
  // In place: elements from a row to the next, and from a step; 0: a panel. Pairs are in panels.
  std::int64_t a_row = 1, a_step = 0;
  bool is_column = false;  // b has one element a step; of pairs never
  // Not null: ahead[t * ahead_step] is fetched at step t, for whoever needs it next. Only where a is a panel.
  const Element* ahead = nullptr;
  std::int64_t ahead_step = 0;
};
void multiply_panels(const GemmPanels<float>& panels);
void multiply_panels(const GemmPanels<BfloatPair>& panels);
void multiply_panels(const GemmPanels<double>& panels);

// c[i, j] = relu(sums[i, j] + bias + c[i, j] as it was), as far as asked for; c may be where the sums are.
struct GemmFinish {
  DataType type = DataType::f32;  // of the bias
  DataType output = DataType::f32;
  const std::byte* row_bias = nullptr;     // of the tile's rows
  const std::byte* column_bias = nullptr;  // and columns
  bool accumulate = false;
  bool relu = false;
};
void finish_tile(const GemmFinish& finish, const float* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                 std::byte* c, std::int64_t ldc);
void finish_tile(const GemmFinish& finish, const double* sums, std::int64_t ld, std::int64_t rows, std::int64_t columns,
                 std::byte* c, std::int64_t ldc);

}  // namespace omniconv::kernels
