// What becomes of a window's elements, a vector of windows at a time: maxima with their indices, sums, and shares of
// gradients. For inclusion by each target of a file of vector code, after Highway.
#if defined(OMNICONV_POOL_WINDOWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_POOL_WINDOWS_INL_H
#undef OMNICONV_POOL_WINDOWS_INL_H
#else
#define OMNICONV_POOL_WINDOWS_INL_H
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "operations/pool2d/direct/rows.h"
#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type>
constexpr std::int64_t bytes_of = type == DataType::f64   ? 8
                                  : type == DataType::f32 ? 4
                                                          : 2;
template <DataType type>
using Real = std::conditional_t<type == DataType::f64, double, float>;

template <class D>
using IndexTag = hn::RebindToSigned<D>;
template <class D>
using IndexVec = hn::Vec<IndexTag<D>>;

template <class D>
HWY_INLINE std::int64_t lanes_of(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}

// Where vectors begin that cover [0, all): the last one begins earlier where there are enough, and makes some of them a
// second time.
HWY_INLINE std::int64_t vector_begin(std::int64_t from, std::int64_t all, std::int64_t lanes) {
  return std::max<std::int64_t>(0, std::min(from, all - lanes));
}

// Indices are s32 in memory, and as wide as the elements in vectors.
template <class D>
HWY_INLINE IndexVec<D> load_indices(D, const std::int32_t* from) {
  const IndexTag<D> wide;
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return hn::LoadU(wide, from);
  else
    return hn::PromoteTo(wide, hn::LoadU(hn::Rebind<std::int32_t, D>(), from));
}
template <class D>
HWY_INLINE void store_indices(D, IndexVec<D> index, std::int32_t* to) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    hn::StoreU(index, IndexTag<D>(), to);
  } else {
    const hn::Rebind<std::int32_t, D> narrow;
    const auto bits =
        hn::TruncateTo(hn::RebindToUnsigned<decltype(narrow)>(), hn::BitCast(hn::RebindToUnsigned<D>(), index));
    hn::StoreU(hn::BitCast(narrow, bits), narrow, to);
  }
}
// The first `count` of them, where there may be no more.
template <class D>
HWY_INLINE IndexVec<D> load_indices(D d, const std::int32_t* from, std::int64_t count) {
  if (count >= lanes_of(d)) return load_indices(d, from);
  std::int32_t some[hn::MaxLanes(d)]{};
  std::memcpy(some, from, static_cast<std::size_t>(count) * sizeof *from);
  return load_indices(d, some);
}
template <class D>
HWY_INLINE void store_indices(D d, IndexVec<D> index, std::int32_t* to, std::int64_t count) {
  if (count >= lanes_of(d)) return store_indices(d, index, to);
  std::int32_t all[hn::MaxLanes(d)];
  store_indices(d, index, all);
  std::memcpy(to, all, static_cast<std::size_t>(count) * sizeof *to);
}

template <class D>
HWY_INLINE IndexVec<D> every_index(D, std::int64_t index) {
  const IndexTag<D> d;
  return hn::Set(d, static_cast<hn::TFromD<IndexTag<D>>>(index));
}

// The first maximum of each window so far. It begins with the index of the window's first element, which is the winner
// also where nothing is greater than minus infinity; so what lies in padding, which counts as that, never wins.
template <class D>
struct Maximum {
  hn::Vec<D> value;
  IndexVec<D> index;
};
template <class D>
HWY_INLINE Maximum<D> no_maximum(D d, IndexVec<D> first) {
  return {hn::Set(d, -std::numeric_limits<hn::TFromD<D>>::infinity()), first};
}
// Comparisons with NaN are false: a NaN is not at most the best so far, and a best that is NaN does not equal itself.
template <class D>
HWY_INLINE void take(D, hn::Vec<D> value, IndexVec<D> index, Maximum<D>& best) {
  const IndexTag<D> indices;
  const auto wins = hn::AndNot(hn::Le(value, best.value), hn::Eq(best.value, best.value));
  best.value = hn::IfThenElse(wins, value, best.value);
  best.index = hn::IfThenElse(hn::RebindMask(indices, wins), index, best.index);
}

// Elements that are stored already: no rounding. A NaN of f16 may have been changed when it was widened, and is fetched
// again: at(lane, index) elements into x. There are `count` windows, of which a vector is made at most.
template <DataType type, class D, class At>
HWY_INLINE void store_maxima(D d, const Maximum<D>& best, std::byte* y, std::int32_t* indices, std::int64_t count,
                             const std::byte* x, const At& at) {
  store_indices(d, best.index, indices, count);
  store_stored<type>(d, best.value, y, count);
  if constexpr (type == DataType::f16 || type == DataType::bf16) {
    if (hn::AllFalse(d, hn::IsNaN(best.value))) return;
    HWY_ALIGN Real<type> values[hn::MaxLanes(d)];
    hn::Store(best.value, d, values);
    for (std::int64_t i = 0; i < std::min(count, lanes_of(d)); ++i)
      if (values[i] != values[i])
        std::memcpy(y + i * bytes_of<type>, x + at(i, indices[i]) * bytes_of<type>,
                    static_cast<std::size_t>(bytes_of<type>));
  }
}

// With what of dy goes to element `index` of its window.
template <Pooling pooling, class D>
HWY_INLINE hn::Vec<D> add_share(D d, hn::Vec<D> sum, IndexVec<D> indices, std::int64_t index, hn::Vec<D> dy) {
  if constexpr (pooling != Pooling::maximum) return hn::Add(sum, dy);
  const auto is_meant = hn::RebindMask(d, hn::Eq(indices, every_index(d, index)));
  return hn::IfThenElse(is_meant, hn::Add(sum, dy), sum);
}

// A row of an array of so many elements, of which `start` lie before it.
template <typename Element>
struct Row {
  const Element* array;
  std::int64_t elements, start, width;
};

// Lanes [first, end) of a vector that begins at `column`: those that lie in the row.
HWY_INLINE PoolRange inside(std::int64_t column, std::int64_t lanes, std::int64_t width) {
  return {std::clamp<std::int64_t>(-column, 0, lanes), std::clamp<std::int64_t>(width - column, 0, lanes)};
}

// Columns [column, column + lanes), by load(elements before them); `outside` stands for those that the row has not.
// What its neighbours have is read in their place where the array has it, else load_some() takes the others one by one.
template <class D, typename Element, class Load, class LoadSome>
HWY_INLINE auto columns_of(D d, const Row<Element>& row, std::int64_t column, hn::TFromD<D> outside, const Load& load,
                           const LoadSome& load_some) {
  const std::int64_t lanes = lanes_of(d), at = row.start + column;
  if (HWY_LIKELY(column >= 0 && column + lanes <= row.width)) return load(at);
  const auto [first, end] = inside(column, lanes, row.width);
  const auto there =
      hn::AndNot(hn::FirstN(d, static_cast<std::size_t>(first)), hn::FirstN(d, static_cast<std::size_t>(end)));
  const bool whole = at >= 0 && at + lanes <= row.elements;
  return hn::IfThenElse(there, whole ? load(at) : load_some(first, end), hn::Set(d, outside));
}
template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_columns(D d, const Row<std::byte>& row, std::int64_t column, hn::TFromD<D> outside) {
  return columns_of(
      d, row, column, outside,
      [&](std::int64_t at) HWY_ATTR { return load_stored<type>(d, row.array + at * bytes_of<type>); },
      [&](std::int64_t first, std::int64_t end) HWY_ATTR {
        HWY_ALIGN std::byte stored[hn::MaxLanes(d) * sizeof(hn::TFromD<D>)]{};
        for (std::int64_t i = first; i < end; ++i)
          std::memcpy(stored + i * bytes_of<type>, row.array + (row.start + column + i) * bytes_of<type>,
                      static_cast<std::size_t>(bytes_of<type>));
        return load_stored<type>(d, stored);
      });
}
template <class D>
HWY_INLINE IndexVec<D> load_index_columns(D d, const Row<std::int32_t>& row, std::int64_t column) {
  return columns_of(
      IndexTag<D>(), row, column, -1, [&](std::int64_t at) HWY_ATTR { return load_indices(d, row.array + at); },
      [&](std::int64_t first, std::int64_t end) HWY_ATTR {
        std::int32_t some[hn::MaxLanes(d)]{};
        for (std::int64_t i = first; i < end; ++i) some[i] = row.array[row.start + column + i];
        return load_indices(d, some);
      });
}

// Asks for what a row so many bytes ahead will read.
HWY_INLINE void prefetch_ahead(const PoolArrays& arrays, std::int64_t row) {
#ifndef PF
#define PF 2048
#endif
  constexpr std::int64_t ahead = PF, line = 64;
  for (const PoolReading& reading : arrays.reading) {
    const std::int64_t begin = row * reading.bytes_of_row + ahead,
                       end = std::min(begin + reading.bytes_of_row, reading.bytes);
    for (std::int64_t at = begin / line * line; at < end; at += line) hwy::Prefetch(reading.from + at);
  }
}

// Calls body(outer, inner) for rows [first, end), of which `each` follow each other in one image, plane or group.
template <typename Body>
HWY_INLINE void for_rows(const PoolArrays& arrays, std::int64_t first, std::int64_t end, std::int64_t each,
                         const Body& body) {
  std::int64_t outer = first / each, inner = first % each;
  for (std::int64_t row = first; row < end; ++row) {
    prefetch_ahead(arrays, row);
    body(outer, inner);
    if (++inner == each) inner = 0, ++outer;
  }
}
// The same of rows of dx, with the rows of windows that hold theirs.
template <typename Body>
HWY_INLINE void for_gradient_rows(const PoolArrays& arrays, std::int64_t first, std::int64_t end, const Body& body) {
  const PoolAxis& axis = arrays.shape->rows;
  PoolWindows windows(axis, first % axis.extent);
  for_rows(arrays, first, end, axis.extent, [&](std::int64_t outer, std::int64_t h) HWY_ATTR {
    if (h == 0) windows = PoolWindows(axis, 0);
    body(outer, h, *windows);
    ++windows;
  });
}

// Calls body<type, pooling>() for the arrays' own.
template <typename Body>
HWY_INLINE void for_type_and_pooling(const PoolArrays& arrays, const Body& body) {
  const auto for_pooling = [&]<DataType type>() {
    switch (arrays.shape->pooling) {
      case Pooling::maximum: return body.template operator()<type, Pooling::maximum>();
      case Pooling::average: return body.template operator()<type, Pooling::average>();
      case Pooling::average_inside: return body.template operator()<type, Pooling::average_inside>();
    }
  };
  switch (arrays.type) {
    case DataType::f16: return for_pooling.template operator()<DataType::f16>();
    case DataType::bf16: return for_pooling.template operator()<DataType::bf16>();
    case DataType::f64: return for_pooling.template operator()<DataType::f64>();
    default: return for_pooling.template operator()<DataType::f32>();
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
