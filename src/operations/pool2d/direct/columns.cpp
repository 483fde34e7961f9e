// nchw of f32, windows of two or three columns two apart: a vector is every other column of x where it lies.
//
// The last vector of a row begins earlier than where the one before it ends. Of a row that is shorter than a vector the
// vector's end is written over the next row, which is made behind it, or not at all where the part's units end.
#include "operations/pool2d/direct/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/columns.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "operations/pool2d/direct/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;
using M = hn::Mask<Tag>;

// Columns [begin, begin + lanes) of a row of so many that are there.
HWY_INLINE M there(std::int64_t begin, std::int64_t columns) {
  const auto first_n = [](std::int64_t n) HWY_ATTR {
    return hn::FirstN(Tag(), static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, lanes_of(Tag()))));
  };
  return hn::AndNot(first_n(-begin), first_n(columns - begin));
}

// A vector of a row, of which those columns are read that are there.
template <bool is_inside>
HWY_INLINE V load(const float* from, M mask, float outside) {
  if constexpr (is_inside) return hn::LoadU(Tag(), from);
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, Tag(), from), hn::Set(Tag(), outside));
}

#if HWY_TARGET != HWY_SCALAR && !HWY_MEM_OPS_MIGHT_FAULT
// What windows [q, q + lanes) of a row find at its ends: the same in every row.
struct ReadEdge {
  ReadEdge(const PoolAxis& columns, std::int64_t q) {
    const std::int64_t lanes = lanes_of(Tag()), begin = columns.begin(q);
    low = there(begin, columns.extent), high = there(begin + lanes, columns.extent);
    low_next = there(begin + 1, columns.extent), high_next = there(begin + lanes + 1, columns.extent);
    before = hn::IfThenElseZero(hn::FirstN(IndexTag<Tag>(), 1), every_index(Tag(), std::max<std::int64_t>(-begin, 0)));
  }
  M low, high, low_next, high_next;
  IndexVec<Tag> before;  // taps of each window that lie before the row, of which the first alone has any
};

// A vector, of which so many elements at most may be written.
template <class D>
HWY_INLINE void store_within(D d, hn::Vec<D> value, hn::TFromD<D>* to, std::int64_t room) {
  if (HWY_LIKELY(room >= lanes_of(d))) return hn::StoreU(value, d, to);
  hn::TFromD<D> all[hn::MaxLanes(d)];
  hn::StoreU(value, d, all);
  std::memcpy(to, all, static_cast<std::size_t>(room) * sizeof *to);
}

// Windows [q, q + lanes) of a row, whose rows of taps begin at `row`; so many elements may be written from q on.
template <bool is_maximum, int taps, bool is_inside>
HWY_INLINE void forward_vector(const PoolPlanes& g, const float* row, const PoolRange& rows, std::int64_t q,
                               const ReadEdge& edge, float* y, std::int32_t* indices, std::int64_t room) {
  const Tag d;
  const std::int64_t lanes = lanes_of(d);
  const float outside = is_maximum ? -std::numeric_limits<float>::infinity() : 0.0F;
  V value = hn::Set(d, outside);
  auto candidate = every_index(d, rows.first * taps);
  auto winner = is_inside ? candidate : hn::Add(candidate, edge.before);  // each window's first element inside
  const auto one = every_index(d, 1);
  const auto take_next = [&](V x) HWY_ATTR {
    take<is_maximum>(d, x, candidate, value, winner);
    candidate = hn::Add(candidate, one);
  };
  row += g.columns.begin(q);
  for (std::int64_t r = rows.first; r < rows.end; ++r, row += g.columns.extent) {
    const V first = load<is_inside>(row, edge.low, outside), second = load<is_inside>(row + lanes, edge.high, outside);
    take_next(hn::ConcatEven(d, second, first));
    take_next(hn::ConcatOdd(d, second, first));
    if constexpr (taps == 3)
      take_next(hn::ConcatOdd(d, load<is_inside>(row + lanes + 1, edge.high_next, outside),
                              load<is_inside>(row + 1, edge.low_next, outside)));
  }
  if constexpr (!is_maximum) value = hn::Div(value, hn::Set(d, static_cast<float>(g.rows.taps * taps)));
  store_within(d, value, y + q, room);
  if constexpr (is_maximum) store_within(IndexTag<Tag>(), winner, indices + q, room);
}

template <bool is_maximum, int taps>
HWY_NOINLINE void columns_forward_row(const PoolPlanes& g, const PoolArrays& a, const Soon& soon, const ReadEdge& left,
                                      const ReadEdge& right, std::int64_t unit, std::int64_t end) {
  soon.fetch(unit, 0, soon.bytes_of_unit());
  const std::int64_t plane = unit / g.rows.outputs, p = unit % g.rows.outputs, lanes = lanes_of(Tag()),
                     outputs = g.columns.outputs;
  const PoolRange rows = g.rows.taps_of(p);
  const float* const row =
      reinterpret_cast<const float*>(a.x) + (plane * g.rows.extent + g.rows.begin(p) + rows.first) * g.columns.extent;
  float* const y = reinterpret_cast<float*>(a.y) + unit * outputs - a.before;
  std::int32_t* const indices = is_maximum ? a.indices + unit * outputs - a.before : nullptr;
  for (std::int64_t from = 0; from < outputs; from += lanes) {
    const std::int64_t q = std::max<std::int64_t>(0, std::min(from, outputs - lanes)), begin = g.columns.begin(q),
                       room = (end - unit) * outputs - q;
    const ReadEdge& edge = q == 0 ? left : right;  // those between are inside
    if (begin >= 0 && begin + 2 * lanes + taps - 2 <= g.columns.extent)
      forward_vector<is_maximum, taps, true>(g, row, rows, q, edge, y, indices, room);
    else
      forward_vector<is_maximum, taps, false>(g, row, rows, q, edge, y, indices, room);
  }
}

// Columns 2 * j and 2 * j + 1 of dx are in windows j + first to j + last: column 2 * j + k is tap pad + k - 2 * i of
// window j + i.
template <int taps, int pad>
struct Held {
  static constexpr int first = (pad - taps + 1) / 2, last = (pad + 1) / 2;
};

// Those windows of [j, j + lanes) that are there: the same in every row.
template <int taps, int pad>
struct WriteEdge {
  WriteEdge(const PoolAxis& columns, std::int64_t j) {
    for (int i = Held<taps, pad>::first; i <= Held<taps, pad>::last; ++i)
      masks[i - Held<taps, pad>::first] = there(j + i, columns.outputs);
  }
  M masks[Held<taps, pad>::last - Held<taps, pad>::first + 1];
};

// Columns [2 * j, 2 * (j + lanes)) of row h of dx, from rows of windows; so many elements may be written from 2 * j on.
template <bool is_maximum, int taps, int pad, bool is_inside>
HWY_INLINE void backward_vector(const PoolPlanes& g, const float* dy, const std::int32_t* indices, std::int64_t h,
                                const PoolRange& rows, std::int64_t j, const WriteEdge<taps, pad>& edge,
                                const Divider<Tag>& divided, float* dx, std::int64_t room) {
  const Tag d;
  const IndexTag<Tag> integers;
  const std::int64_t lanes = lanes_of(d);
  V even = hn::Zero(d), odd = even;
  constexpr int first = Held<taps, pad>::first, last = Held<taps, pad>::last;
  for (std::int64_t p = rows.first; p < rows.end; ++p) {
    const std::int64_t from = (p - rows.first) * g.columns.outputs + j, index = (h - g.rows.begin(p)) * taps;
    for (int i = first; i <= last; ++i) {
      const M mask = edge.masks[i - first];
      const V share = load<is_inside>(dy + from + i, mask, 0);
      auto winner = every_index(d, 0);
      if constexpr (is_maximum)
        winner = hn::BitCast(integers, load<is_inside>(reinterpret_cast<const float*>(indices) + from + i, mask,
                                                       std::bit_cast<float>(std::int32_t{-1})));
      const auto add = [&](int tap, V& sum) HWY_ATTR {
        if (tap < 0 || tap >= taps) return;
        const V more = hn::Add(sum, share);
        if constexpr (is_maximum)
          sum = hn::IfThenElse(hn::RebindMask(d, hn::Eq(winner, every_index(d, index + tap))), more, sum);
        else
          sum = more;
      };
      add(pad - 2 * i, even);
      add(pad + 1 - 2 * i, odd);
    }
  }
  if constexpr (!is_maximum) {
    even = divided(even);
    odd = divided(odd);
  }
  if (HWY_LIKELY(room >= 2 * lanes)) return hn::StoreInterleaved2(even, odd, d, dx + 2 * j);
  float both[2 * hn::MaxLanes(d)];
  hn::StoreInterleaved2(even, odd, d, both);
  std::memcpy(dx + 2 * j, both, static_cast<std::size_t>(room) * sizeof *dx);
}

template <bool is_maximum, int taps, int pad>
HWY_NOINLINE void columns_backward_row(const PoolPlanes& g, const PoolArrays& a, const Divider<Tag>& divided,
                                       const Soon& soon, const Soon& indices_soon, const WriteEdge<taps, pad>& left,
                                       const WriteEdge<taps, pad>& right, std::int64_t unit, std::int64_t end,
                                       std::int64_t plane, const Windows& windows) {
  soon.fetch(unit, 0, soon.bytes_of_unit());
  if constexpr (is_maximum) indices_soon.fetch(unit, 0, indices_soon.bytes_of_unit());
  const std::int64_t h = windows.at, lanes = lanes_of(Tag()), pairs = (g.columns.extent + 1) / 2,
                     outputs = g.columns.outputs;
  const PoolRange rows = windows.range;
  const std::int64_t at = (plane * g.rows.outputs + rows.first) * outputs;
  const float* const dy = reinterpret_cast<const float*>(a.y) + at;
  const std::int32_t* const indices = is_maximum ? a.indices + at : nullptr;
  float* const dx = reinterpret_cast<float*>(a.x) + unit * g.columns.extent - a.before;
  for (std::int64_t from = 0; from < pairs; from += lanes) {
    const std::int64_t j = std::max<std::int64_t>(0, std::min(from, pairs - lanes)),
                       room = (end - unit) * g.columns.extent - 2 * j;
    if (j + Held<taps, pad>::first >= 0 && j + Held<taps, pad>::last + lanes <= outputs)
      backward_vector<is_maximum, taps, pad, true>(g, dy, indices, h, rows, j, left, divided, dx, room);
    else if (j == 0 || j == pairs - lanes)
      backward_vector<is_maximum, taps, pad, false>(g, dy, indices, h, rows, j, j == 0 ? left : right, divided, dx,
                                                    room);
    else  // the last but one, where windows end before columns do
      backward_vector<is_maximum, taps, pad, false>(g, dy, indices, h, rows, j, WriteEdge<taps, pad>(g.columns, j),
                                                    divided, dx, room);
  }
}

template <bool is_maximum, int taps, int pad>
void make_columns_of(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  const Divider divided(Tag(), g.rows.taps * taps);
  const std::int64_t x_bytes = g.planes * g.rows.extent * g.columns.extent * 4,
                     y_bytes = g.planes * g.rows.outputs * g.columns.outputs * 4;
  const Soon x(a.x, x_bytes, g, x_bytes / g.units() + 1024), dy(a.y, y_bytes, g, g.columns.outputs * 4 + 1024),
      indices(a.indices, y_bytes, g, g.columns.outputs * 4 + 1024);
  if (!g.backward) {
    const ReadEdge left(g.columns, 0), right(g.columns, std::max<std::int64_t>(0, g.columns.outputs - lanes_of(Tag())));
    for (std::int64_t unit = first; unit < end; ++unit)
      columns_forward_row<is_maximum, taps>(g, a, x, left, right, unit, end);
    return;
  }
  const WriteEdge<taps, pad> left(g.columns, 0),
      right(g.columns, std::max<std::int64_t>(0, (g.columns.extent + 1) / 2 - lanes_of(Tag())));
  Windows windows(g.rows, first % g.rows.extent);
  for (std::int64_t unit = first, plane = first / g.rows.extent; unit < end; ++unit, windows.next()) {
    if (unit > first && windows.at == 0) ++plane;
    columns_backward_row<is_maximum, taps, pad>(g, a, divided, dy, indices, left, right, unit, end, plane, windows);
  }
}

void make_columns(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  const auto make = [&]<bool is_maximum>() {
    if (g.columns.taps == 2) return make_columns_of<is_maximum, 2, 0>(g, a, first, end);
    if (g.columns.pad == 0) return make_columns_of<is_maximum, 3, 0>(g, a, first, end);
    make_columns_of<is_maximum, 3, 1>(g, a, first, end);
  };
  g.pooling == Pooling::maximum ? make.template operator()<true>() : make.template operator()<false>();
}
#else
void make_columns(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  make_pool_lines(g, a, first, end);
}
#endif

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(make_columns);

void make_pool_columns(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(make_columns)(planes, arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
