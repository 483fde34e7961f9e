#include "vector/matrix/offset_tiles.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/offset_tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/matrix/step-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Element>
struct OffsetTile {
  template <int rows, int V>
  static HWY_NOINLINE void run(const OffsetTiles<Element>& p) {
    const hn::ScalableTag<typename SumOf<Element>::Type> d;
    hn::Vec<decltype(d)> sums[rows][V];
    zero_sums(d, sums);
    const Element *a = p.a, *const b = p.b;
    const std::int64_t* const end = p.offsets + p.steps;
    for (const std::int64_t* at = p.offsets; at != end; ++at, a += rows) add_step<rows, V, false>(d, a, b + *at, sums);
    store_sums<rows, V>(d, sums, p.sums, p.ld, p.columns, p.add);
  }
};

template <typename Element>
void multiply(const OffsetTiles<Element>& tiles) {
  const hn::ScalableTag<typename SumOf<Element>::Type> d;
  const std::int64_t most =
      (tiles.rows <= few_rows ? few_rows_vectors : vectors) * static_cast<std::int64_t>(hn::Lanes(d));
  OffsetTiles<Element> some = tiles;
  for (std::int64_t left = tiles.columns; left > 0; left -= most, some.b += most, some.sums += most) {
    some.columns = std::min(left, most);
    tile_of<OffsetTile<Element>>(d, some.rows, some.columns)(some);
  }
}

void MultiplyOffsetsF32(const OffsetTiles<float>& tile) {
  multiply(tile);
}
void MultiplyOffsetsF64(const OffsetTiles<double>& tile) {
  multiply(tile);
}

void MultiplyOffsetsPairs(const OffsetTiles<BfloatPair>& tile) {
  multiply(tile);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(MultiplyOffsetsF32);
HWY_EXPORT(MultiplyOffsetsF64);
HWY_EXPORT(MultiplyOffsetsPairs);

void multiply_offsets(const OffsetTiles<float>& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyOffsetsF32)(tile);
}
void multiply_offsets(const OffsetTiles<BfloatPair>& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyOffsetsPairs)(tile);
}
void multiply_offsets(const OffsetTiles<double>& tile) {
  HWY_DYNAMIC_DISPATCH(MultiplyOffsetsF64)(tile);
}

}  // namespace omniconv::kernels
#endif
