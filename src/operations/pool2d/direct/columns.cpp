// nchw: a vector is neighbouring columns of one row of the output; backward, of every stride-th column of x.
#include "operations/pool2d/direct/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/pool2d/direct/windows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of the windows of a row from q on, whose rows of taps are `rows`.
template <class D>
HWY_INLINE IndexVec<D> first_indices(D d, const PoolAxis& columns, std::int64_t rows_first, std::int64_t q) {
  if (HWY_LIKELY(columns.begin(q) >= 0)) return every_index(d, rows_first * columns.taps);
  std::int32_t first[hn::MaxLanes(d)];
  for (std::int64_t i = 0; i < lanes_of(d); ++i)
    first[i] = static_cast<std::int32_t>(rows_first * columns.taps + std::max<std::int64_t>(0, -columns.begin(q + i)));
  return load_indices(d, first);
}
template <Pooling pooling, class D>
HWY_INLINE hn::Vec<D> divisors(D d, const PoolAxis& columns, std::int64_t all_rows, std::int64_t rows, std::int64_t q) {
  using T = hn::TFromD<D>;
  if constexpr (pooling == Pooling::average) return hn::Set(d, static_cast<T>(all_rows * columns.taps));
  if (HWY_LIKELY(columns.begin(q) >= 0 && columns.begin(q + lanes_of(d) - 1) + columns.taps <= columns.extent))
    return hn::Set(d, static_cast<T>(rows * columns.taps));
  HWY_ALIGN T all[hn::MaxLanes(d)];
  for (std::int64_t i = 0; i < lanes_of(d); ++i)
    all[i] = static_cast<T>(rows * std::max<std::int64_t>(1, columns.taps_of(q + i).count()));
  return hn::Load(d, all);
}

// Calls take(vector, s) with what tap s of the windows from q on meets in a row of x, for each s at which one of them
// meets any. `stride` 0: whatever the axis says.
template <DataType type, int stride, class D, class Take>
HWY_INLINE void for_taps(D d, const Row<std::byte>& row, const PoolAxis& columns, std::int64_t q, Real<type> outside,
                         const Take& take) {
  const std::int64_t begin = columns.begin(q), lanes = lanes_of(d);
  const std::int64_t end = std::min(columns.taps, row.width - begin);
  std::int64_t s = std::clamp<std::int64_t>(-begin - (lanes - 1) * columns.stride, 0, end);
  const auto load = [&](std::int64_t column) HWY_ATTR { return load_columns<type>(d, row, begin + column, outside); };
  if constexpr (stride == 1) {
    for (; s < end; ++s) take(load(s), s);
#if HWY_TARGET != HWY_SCALAR
  } else if constexpr (stride == 2) {
    for (; s + 1 < end; s += 2) {
      const auto low = load(s), high = load(s + lanes);
      take(hn::ConcatEven(d, high, low), s);
      take(hn::ConcatOdd(d, high, low), s + 1);
    }
    if (s >= end) return;
    // The last one alone: with the one before it, so as not to reach beyond the row.
    if (s > 0)
      take(hn::ConcatOdd(d, load(s - 1 + lanes), load(s - 1)), s);
    else
      take(hn::ConcatEven(d, load(lanes), load(0)), s);
#endif
  } else {
    HWY_ALIGN Real<type> values[hn::MaxLanes(d)];
    for (; s < end; ++s) {
      for (std::int64_t i = 0; i < lanes; ++i) {
        const std::int64_t column = begin + i * columns.stride + s;
        values[i] = column >= 0 && column < row.width
                        ? static_cast<Real<type>>(load_element(type, row.array + (row.start + column) * bytes_of<type>))
                        : outside;
      }
      take(hn::Load(d, values), s);
    }
  }
}

// Whether all that for_row() reads of the windows from q on is inside a row.
template <int stride>
HWY_INLINE bool is_inside(const PoolAxis& columns, std::int64_t q, std::int64_t lanes) {
  if (stride == 0) return false;
  const std::int64_t begin = columns.begin(q), last = std::max<std::int64_t>(columns.taps - stride, 0);
  return begin >= 0 && begin + last + stride * lanes <= columns.extent;
}
// The same as for_taps() where it is, without asking again and again.
template <DataType type, int stride, class D, class Take>
HWY_INLINE void for_row(D d, const std::byte* row, std::int64_t taps, const Take& take) {
  const auto load = [&](std::int64_t column) HWY_ATTR { return load_stored<type>(d, row + column * bytes_of<type>); };
  if constexpr (stride == 1) {
    for (std::int64_t s = 0; s < taps; ++s) take(load(s));
#if HWY_TARGET != HWY_SCALAR
  } else if constexpr (stride == 2) {
    const std::int64_t lanes = lanes_of(d);
    std::int64_t s = 0;
    for (; s + 1 < taps; s += 2) {
      const auto low = load(s), high = load(s + lanes);
      take(hn::ConcatEven(d, high, low));
      take(hn::ConcatOdd(d, high, low));
    }
    if (s >= taps) return;
    take(s > 0 ? hn::ConcatOdd(d, load(s - 1 + lanes), load(s - 1)) : hn::ConcatEven(d, load(lanes), load(0)));
#endif
  }
}

template <DataType type, Pooling pooling, int stride>
HWY_NOINLINE void columns_forward_row(const PoolArrays& a, std::int64_t plane, std::int64_t p) {
  const hn::ScalableTag<Real<type>> d;
  using D = hn::ScalableTag<Real<type>>;
  const Pool2dShape& g = *a.shape;
  const std::int64_t size = bytes_of<type>, lanes = lanes_of(d), outputs = g.columns.outputs, width = g.columns.extent,
                     elements = g.x_elements(), taps = g.columns.taps;
  const PoolRange rows = g.rows.taps_of(p);
  const std::int64_t top = plane * g.rows.extent + g.rows.begin(p),
                     to = (plane * g.rows.outputs + p) * outputs - a.written;
  // Of the windows from q on: whole(row of x) where all that is read is inside, else some(row of x, its number).
  const auto for_window = [&](std::int64_t q, const auto& whole, const auto& some) HWY_ATTR {
    if (HWY_LIKELY(is_inside<stride>(g.columns, q, lanes))) {
      const std::byte* row = a.x + ((top + rows.first) * width + g.columns.begin(q)) * size;
      for (std::int64_t r = rows.first; r < rows.end; ++r, row += width * size) whole(row);
    } else {
      for (std::int64_t r = rows.first; r < rows.end; ++r)
        some(Row<std::byte>{a.x, elements, (top + r) * width, width}, r);
    }
  };
  for (std::int64_t from = 0; from < outputs; from += lanes) {
    const std::int64_t q = vector_begin(from, outputs, lanes);
    if constexpr (pooling == Pooling::maximum) {
      auto best = no_maximum(d, first_indices(d, g.columns, rows.first, q));
      auto index = every_index(d, rows.first * taps);
      const auto one = every_index(d, 1);
      for_window(
          q,
          [&](const std::byte* row) HWY_ATTR {
            for_row<type, stride>(d, row, taps, [&](hn::Vec<D> x) HWY_ATTR {
              take(d, x, index, best);
              index = hn::Add(index, one);
            });
          },
          [&](const Row<std::byte>& row, std::int64_t r) HWY_ATTR {
            for_taps<type, stride>(d, row, g.columns, q, -std::numeric_limits<Real<type>>::infinity(),
                                   [&](hn::Vec<D> x, std::int64_t s)
                                       HWY_ATTR { take(d, x, every_index(d, r * taps + s), best); });
          });
      store_maxima<type>(d, best, a.y + (to + q) * size, a.indices + to + q, outputs, a.x,
                         [&](std::int64_t lane, std::int32_t place) {
                           return (top + place / taps) * width + g.columns.begin(q + lane) + place % taps;
                         });
    } else {
      auto sum = hn::Zero(d);
      const auto add = [&](hn::Vec<D> x) HWY_ATTR { sum = hn::Add(sum, x); };
      for_window(
          q, [&](const std::byte* row) HWY_ATTR { for_row<type, stride>(d, row, taps, add); },
          [&](const Row<std::byte>& row, std::int64_t) HWY_ATTR {
            for_taps<type, stride>(d, row, g.columns, q, 0, [&](hn::Vec<D> x, std::int64_t) HWY_ATTR { add(x); });
          });
      const auto divisor = divisors<pooling>(d, g.columns, g.rows.taps, rows.count(), q);
      store_stored<type>(d, hn::Div(sum, divisor), a.y + (to + q) * size, outputs);
    }
  }
}

// What goes to columns `column` + k, for k in [0, count), of row h of dx, and in further lanes to those `step` columns
// further right.
template <DataType type, Pooling pooling, int count, class D>
HWY_INLINE void add_gradients(D d, const PoolArrays& a, std::int64_t plane, std::int64_t h, const PoolRange& rows,
                              std::int64_t column, std::int64_t step, hn::Vec<D> (&sums)[count]) {
  const Pool2dShape& g = *a.shape;
  const std::int64_t outputs = g.columns.outputs, taps = g.columns.taps, elements = g.y_elements();
  // Window q meets column + k with its tap reach + k - q * step; so does its neighbour in the next lane.
  const std::int64_t reach = column + g.columns.pad, before = reach - taps;
  const std::int64_t first = std::max(before < 0 ? -((-before - 1) / step) : before / step + 1, 1 - lanes_of(d)),
                     last = std::min((reach + count - 1) / step, outputs - 1);
  const bool inside_row = first >= 0 && last + lanes_of(d) <= outputs;
  for (std::int64_t p = rows.first; p < rows.end; ++p) {
    const std::int64_t from = (plane * g.rows.outputs + p) * outputs;
    std::int64_t s = reach - first * step, index = (h - g.rows.begin(p)) * taps + s;
    for (std::int64_t q = first; q <= last; ++q, s -= step, index -= step) {
      auto dy = HWY_LIKELY(inside_row) ? load_stored<type>(d, a.y + (from + q) * bytes_of<type>)
                                       : load_columns<type>(d, {a.y, elements, from, outputs}, q, 0);
      if constexpr (pooling == Pooling::average_inside)
        dy = hn::Div(dy, divisors<pooling>(d, g.columns, g.rows.taps, g.rows.taps_of(p).count(), q));
      auto indices = every_index(d, 0);
      if constexpr (pooling == Pooling::maximum)
        indices = HWY_LIKELY(inside_row) ? load_indices(d, a.indices + from + q)
                                         : load_index_columns(d, {a.indices, elements, from, outputs}, q);
      for (int k = 0; k < count; ++k)
        if (s + k >= 0 && s + k < taps) sums[k] = add_share<pooling>(d, sums[k], indices, index + k, dy);
    }
  }
  if constexpr (pooling == Pooling::average) {
    const auto divisor = hn::Set(d, static_cast<hn::TFromD<D>>(g.rows.taps * taps));
    for (auto& sum : sums) sum = hn::Div(sum, divisor);
  }
}

template <DataType type, Pooling pooling, int stride>
HWY_NOINLINE void columns_backward_row(const PoolArrays& a, std::int64_t plane, std::int64_t h, const PoolRange& rows) {
  using T = Real<type>;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const Pool2dShape& g = *a.shape;
  const std::int64_t lanes = lanes_of(d), step = stride > 0 ? stride : g.columns.stride, width = g.columns.extent;
  std::byte* const row = a.x + ((plane * g.rows.extent + h) * width - a.written) * bytes_of<type>;
  for (std::int64_t from = 0; from < width; from += lanes * step) {
    if constexpr (stride == 1) {
      const std::int64_t column = vector_begin(from, width, lanes);
      V sums[1] = {hn::Zero(d)};
      add_gradients<type, pooling>(d, a, plane, h, rows, column, step, sums);
      store_stored<type>(d, sums[0], row + column * bytes_of<type>, width);
    } else if constexpr (stride == 2) {
      const std::int64_t column = vector_begin(from, width, 2 * lanes);
      V sums[2] = {hn::Zero(d), hn::Zero(d)};
      add_gradients<type, pooling>(d, a, plane, h, rows, column, step, sums);
      HWY_ALIGN T both[2 * hn::MaxLanes(d)];
      hn::StoreInterleaved2(sums[0], sums[1], d, both);
      store_stored<type>(d, hn::Load(d, both), row + column * bytes_of<type>);
      store_stored<type>(d, hn::Load(d, both + lanes), row + (column + lanes) * bytes_of<type>, width - lanes);
    } else {
      HWY_ALIGN T one[hn::MaxLanes(d)];
      for (std::int64_t column = from; column < std::min(width, from + step); ++column) {
        V sums[1] = {hn::Zero(d)};
        add_gradients<type, pooling>(d, a, plane, h, rows, column, step, sums);
        hn::Store(sums[0], d, one);
        for (std::int64_t lane = 0; lane < lanes && column + lane * step < width; ++lane)
          store_element(type, one[lane], row + (column + lane * step) * bytes_of<type>);
      }
    }
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr int pool_strides[] = {1, 0, 0};
#else
constexpr int pool_strides[] = {1, 2, 0};
#endif

template <typename Body>
HWY_INLINE void for_stride(std::int64_t stride, const Body& body) {
  if (stride == 1) return body.template operator()<pool_strides[0]>();
  if (stride == 2) return body.template operator()<pool_strides[1]>();
  body.template operator()<pool_strides[2]>();
}

void columns_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  const Pool2dShape& g = *arrays.shape;
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for_stride(g.columns.stride, [&]<int stride>() {
      for_rows(arrays, first, end, g.rows.outputs, [&](std::int64_t plane, std::int64_t p) {
        columns_forward_row<type, pooling, stride>(arrays, plane, p);
      });
    });
  });
}

void columns_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  const Pool2dShape& g = *arrays.shape;
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for_stride(g.columns.stride, [&]<int stride>() {
      for_gradient_rows(arrays, first, end, [&](std::int64_t plane, std::int64_t h, const PoolRange& rows) {
        columns_backward_row<type, pooling, stride>(arrays, plane, h, rows);
      });
    });
  });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(columns_forward);
HWY_EXPORT(columns_backward);

void pool_columns_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(columns_forward)(arrays, first, end);
}
void pool_columns_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(columns_backward)(arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
