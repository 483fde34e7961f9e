// nchw, where the one window of a plane is the whole plane: a vector is neighbouring elements of it.
#include "operations/pool2d/direct/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/global.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/pool2d/direct/windows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE IndexVec<D> indices_from(D d, std::int64_t index) {
  return hn::Add(hn::Iota(IndexTag<D>(), 0), every_index(d, index));
}

// The index of the winner among the winners of lanes: the first NaN, or else the first of those that equal the
// greatest.
template <class D>
HWY_INLINE std::int64_t first_winner(D d, const Maximum<D>& best) {
  const IndexTag<D> indices;
  auto wins = hn::IsNaN(best.value);
  if (HWY_LIKELY(hn::AllFalse(d, wins))) wins = hn::Eq(best.value, hn::MaxOfLanes(d, best.value));
  const auto none = hn::Set(indices, std::numeric_limits<hn::TFromD<IndexTag<D>>>::max());
  return hn::GetLane(hn::MinOfLanes(indices, hn::IfThenElse(hn::RebindMask(indices, wins), best.index, none)));
}

template <DataType type, Pooling pooling>
HWY_INLINE void global_forward_plane(const PoolArrays& a, std::int64_t plane, std::int64_t elements) {
  const hn::ScalableTag<Real<type>> d;
  const std::int64_t lanes = lanes_of(d);
  const Row<std::byte> row{a.x, a.shape->x_elements(), plane * elements, elements};
  const std::int64_t to = plane - a.written;
  std::byte* const y = a.y + to * bytes_of<type>;
  if constexpr (pooling == Pooling::maximum) {
    auto best = no_maximum(d, every_index(d, 0));
    for (std::int64_t e = 0; e < elements; e += lanes)
      take(d, load_columns<type>(d, row, e, -std::numeric_limits<Real<type>>::infinity()), indices_from(d, e), best);
    const std::int64_t index = first_winner(d, best);
    a.indices[to] = static_cast<std::int32_t>(index);
    std::memcpy(y, row.array + (row.start + index) * bytes_of<type>, static_cast<std::size_t>(bytes_of<type>));
  } else {
    auto sum = hn::Zero(d);
    for (std::int64_t e = 0; e < elements; e += lanes) sum = hn::Add(sum, load_columns<type>(d, row, e, 0));
    store_element(type, hn::GetLane(hn::SumOfLanes(d, sum)) / static_cast<Real<type>>(elements), y);
  }
}

template <DataType type, Pooling pooling>
HWY_INLINE void global_backward_plane(const PoolArrays& a, std::int64_t plane, std::int64_t elements) {
  const hn::ScalableTag<Real<type>> d;
  const std::int64_t lanes = lanes_of(d);
  std::byte* const row = a.x + (plane * elements - a.written) * bytes_of<type>;
  auto dy = hn::Set(d, static_cast<Real<type>>(load_element(type, a.y + plane * bytes_of<type>)));
  auto index = every_index(d, 0);
  if constexpr (pooling == Pooling::maximum)
    index = every_index(d, a.indices[plane]);
  else
    dy = hn::Div(dy, hn::Set(d, static_cast<Real<type>>(elements)));
  for (std::int64_t from = 0; from < elements; from += lanes) {
    const std::int64_t e = vector_begin(from, elements, lanes);
    const auto value =
        pooling == Pooling::maximum ? hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(index, indices_from(d, e))), dy) : dy;
    store_stored<type>(d, value, row + e * bytes_of<type>, elements);
  }
}

void global_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  const std::int64_t elements = arrays.shape->rows.extent * arrays.shape->columns.extent;
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for (std::int64_t plane = first; plane < end; ++plane) global_forward_plane<type, pooling>(arrays, plane, elements);
  });
}

void global_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  const std::int64_t elements = arrays.shape->rows.extent * arrays.shape->columns.extent;
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for_rows(arrays, first, end, 1,
             [&](std::int64_t plane, std::int64_t) { global_backward_plane<type, pooling>(arrays, plane, elements); });
  });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(global_forward);
HWY_EXPORT(global_backward);

void pool_global_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(global_forward)(arrays, first, end);
}
void pool_global_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(global_backward)(arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
