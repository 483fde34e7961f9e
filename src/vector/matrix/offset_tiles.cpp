#include "vector/matrix/offset_tiles.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/offset_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/matrix/step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int rows, int V, typename Real>
HWY_NOINLINE void offset_tile(const OffsetTiles<Real>& p) {
  const hn::ScalableTag<Real> d;
  hn::Vec<decltype(d)> sums[rows][V];
  OMNICONV_UNROLL for (int i = 0; i < rows; ++i) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[i][v] = hn::Zero(d);
    }
  }
  const Real *a = p.a, *const b = p.b;
  const std::int64_t* const end = p.offsets + p.steps;
  for (const std::int64_t* at = p.offsets; at != end; ++at, a += rows) add_step<rows, V, false>(d, a, b + *at, sums);
  store_sums<rows, V>(d, sums, p.sums, p.ld, p.columns, p.add);
}

template <typename Real>
using OffsetFunction = void (*)(const OffsetTiles<Real>&);

// At [v - 1]: tiles of so many rows and v vectors.
template <typename Real, int rows, int... v>
constexpr std::array<OffsetFunction<Real>, few_rows_vectors> offset_tiles_of(std::integer_sequence<int, v...>) {
  return {offset_tile<rows, v + 1, Real>...};
}

// At [rows - 1].
template <typename Real, int... row>
constexpr std::array<std::array<OffsetFunction<Real>, few_rows_vectors>, most_rows> all_offset_tiles(
    std::integer_sequence<int, row...>) {
  return {offset_tiles_of<Real, row + 1>(std::make_integer_sequence < int,
                                         row + 1 <= few_rows ? few_rows_vectors : vectors > ())...};
}

template <typename Real>
void multiply(const OffsetTiles<Real>& tile) {
  static constexpr auto tiles = all_offset_tiles<Real>(std::make_integer_sequence<int, most_rows>());
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<Real>()));
  const auto& of_rows = tiles[static_cast<std::size_t>(tile.rows - 1)];
  const std::int64_t most = (tile.rows <= few_rows ? few_rows_vectors : vectors) * lanes;
  OffsetTiles<Real> some = tile;
  for (std::int64_t left = tile.columns; left > 0; left -= most, some.b += most, some.sums += most) {
    some.columns = std::min(left, most);
    of_rows[static_cast<std::size_t>((some.columns - 1) / lanes)](some);
  }
}

void MultiplyOffsetsF32(const OffsetTiles<float>& tile) {
  multiply(tile);
}
void MultiplyOffsetsF64(const OffsetTiles<double>& tile) {
  multiply(tile);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(MultiplyOffsetsF32);
HWY_EXPORT(MultiplyOffsetsF64);

void multiply_offsets(const OffsetTiles<float>& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyOffsetsF32)(tile);
}
void multiply_offsets(const OffsetTiles<double>& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyOffsetsF64)(tile);
}

}  // namespace omniconv::kernels
#endif
