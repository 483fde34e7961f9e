// nhwc of f32: a vector is neighbouring channels of a pixel, and takes all taps from where they lie.
#include "operations/pool2d/direct/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/channels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "operations/pool2d/direct/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;
constexpr DataType f32 = DataType::f32;

// What one pixel that is made reads: its window's elements, or backward the windows that hold it.
struct Taps {
  HWY_INLINE void add(std::int64_t offset, std::int64_t number) {
    offsets[count] = offset;
    numbers[count++] = static_cast<std::int32_t>(number);
  }
  std::int64_t offsets[most_pool_taps];
  std::int32_t numbers[most_pool_taps];
  std::int64_t count = 0;
};

// Calls body(channel, how many from there on) for each vector of them.
template <typename Body>
HWY_INLINE void for_channels(std::int64_t depth, const Body& body) {
  const std::int64_t lanes = lanes_of(Tag());
  std::int64_t c = 0;
  for (; c + lanes <= depth; c += lanes) body(c, lanes);
  if (c < depth) body(c, depth - c);
}
HWY_INLINE V load(const float* from, std::int64_t count) {
  return load_stored<f32>(Tag(), reinterpret_cast<const std::byte*>(from), count);
}
HWY_INLINE void store(V value, float* to, std::int64_t count, bool streams) {
  if (streams) return hn::Stream(value, Tag(), to);
  store_stored<f32>(Tag(), value, reinterpret_cast<std::byte*>(to), count);
}
HWY_INLINE IndexVec<Tag> load(const std::int32_t* from, std::int64_t count) {
  return hn::BitCast(IndexTag<Tag>(), load(reinterpret_cast<const float*>(from), count));
}

// Calls body<count>() for some counts, body<0>() for others: with a count that is known all addresses stay in
// registers.
template <typename Body>
HWY_INLINE void for_count(std::int64_t count, const Body& body) {
  switch (count) {
    case 1: return body.template operator()<1>();
    case 2: return body.template operator()<2>();
    case 4: return body.template operator()<4>();
    case 9: return body.template operator()<9>();
    default: return body.template operator()<0>();
  }
}

// Of a window, those taps from number `first` on that are taken at once.
struct Take {
  const float* x;
  std::int64_t depth, first, ahead;
  float divisor;
  bool streams;
  float* y;
  std::int32_t* indices;  // y and they have what the taps before gave
};
template <bool is_maximum, int fixed_count>
HWY_NOINLINE void take_taps(const Take take_from, const Taps& all, std::int64_t some_count) {
  const Tag d;
  const float* const x = take_from.x;
  const std::int64_t first = take_from.first, ahead = take_from.ahead;
  const float divisor = take_from.divisor;
  const bool streams = take_from.streams;
  float* const y = take_from.y;
  std::int32_t* const indices = take_from.indices;
  const std::int64_t count = fixed_count > 0 ? fixed_count : some_count;
  const bool is_last = first + count == all.count;
  const float* from[pool_taps_at_once];
  for (std::int64_t tap = 0; tap < count; ++tap) from[tap] = x + all.offsets[first + tap];
  for_channels(take_from.depth, [&](std::int64_t c, std::int64_t there) HWY_ATTR {
    V value = hn::Set(d, is_maximum ? -std::numeric_limits<float>::infinity() : 0.0F);
    auto winner = every_index(d, all.numbers[0]);
    if (first > 0) {
      value = load(y + c, there);
      if constexpr (is_maximum) winner = load(indices + c, there);
    }
    for (std::int64_t tap = 0; tap < count; ++tap) {
      if (ahead > 0) hwy::Prefetch(from[tap] + c + ahead);
      take<is_maximum>(d, load(from[tap] + c, there), every_index(d, all.numbers[first + tap]), value, winner);
    }
    if (!is_maximum && is_last) value = hn::Div(value, hn::Set(d, divisor));
    store(value, y + c, there, streams);
    if constexpr (is_maximum) store(hn::BitCast(d, winner), reinterpret_cast<float*>(indices) + c, there, streams);
  });
}

// Asks for what windows somewhat behind number q of a row read and those before them do not. x: where its first row of
// taps begins.
HWY_INLINE void fetch_next(const PoolPlanes& g, const float* x, std::int64_t q) {
  const std::int64_t rows = std::min(g.rows.taps, g.rows.stride), columns = std::min(g.columns.taps, g.columns.stride);
  for (std::int64_t r = g.rows.taps - rows; r < g.rows.taps; ++r) {
    const std::int64_t column = g.columns.begin(q) + g.columns.taps - columns;
    const auto* const from = reinterpret_cast<const std::byte*>(x + (r * g.columns.extent + column) * g.depth);
    for (std::int64_t i = 0; i < columns * g.depth * 4; i += 64) hwy::Prefetch(from + ahead_bytes + i);
  }
}

template <bool is_maximum>
HWY_NOINLINE void channels_forward_row(const PoolPlanes& g, const PoolArrays& a, std::int64_t unit) {
  const std::int64_t plane = unit / g.rows.outputs, p = unit % g.rows.outputs, outputs = g.columns.outputs,
                     depth = g.depth, all = g.rows.taps * g.columns.taps;
  const float* const x = reinterpret_cast<const float*>(a.x);
  const PoolRange rows = g.rows.taps_of(p);
  const auto divisor = static_cast<float>(all);
  for (std::int64_t q = 0; q < outputs; ++q) {
    Taps taps;
    const PoolRange columns = g.columns.taps_of(q);
    for (std::int64_t r = rows.first; r < rows.end; ++r) {
      const std::int64_t row = (plane * g.rows.extent + g.rows.begin(p) + r) * g.columns.extent + g.columns.begin(q);
      for (std::int64_t s = columns.first; s < columns.end; ++s) taps.add((row + s) * depth, r * g.columns.taps + s);
    }
    constexpr std::int64_t at_once = pool_taps_at_once;
    const std::int64_t to = (unit * outputs + q) * depth - a.before, ahead = all > at_once ? at_once * depth : 0;
    if (ahead == 0) fetch_next(g, x + (plane * g.rows.extent + g.rows.begin(p)) * g.columns.extent * depth, q);
    float* const y = reinterpret_cast<float*>(a.y) + to;
    std::int32_t* const indices = is_maximum ? a.indices + to : nullptr;
    for (std::int64_t first = 0; first < taps.count; first += at_once) {
      const std::int64_t count = std::min(at_once, taps.count - first);
      const Take taken{x, depth, first, ahead, divisor, a.streams, y, indices};
      for_count(count, [&]<int fixed_count>() { take_taps<is_maximum, fixed_count>(taken, taps, count); });
    }
  }
}

// To a pixel of dx, from the windows that hold it.
template <bool is_maximum, int fixed_count>
HWY_NOINLINE void give_gradients(const PoolArrays& a, std::int64_t depth, const Divider<Tag>& divider, const Taps& taps,
                                 float* dx) {
  const Tag d;
  const Divider<Tag> divided = divider;
  const float* const dy = reinterpret_cast<const float*>(a.y);
  const std::int32_t* const indices = a.indices;
  const bool streams = a.streams;
  const std::int64_t count = fixed_count > 0 ? fixed_count : taps.count;
  std::int64_t from[fixed_count > 0 ? fixed_count : most_pool_taps];
  std::copy_n(taps.offsets, count, from);
  for_channels(depth, [&](std::int64_t c, std::int64_t there) HWY_ATTR {
    V sum = hn::Zero(d);
    for (std::int64_t tap = 0; tap < count; ++tap) {
      const V more = hn::Add(sum, load(dy + from[tap] + c, there));
      if constexpr (is_maximum) {
        const auto is_meant = hn::Eq(load(indices + from[tap] + c, there), every_index(d, taps.numbers[tap]));
        sum = hn::IfThenElse(hn::RebindMask(d, is_meant), more, sum);
      } else {
        sum = more;
      }
    }
    if constexpr (!is_maximum) sum = divided(sum);
    store(sum, dx + c, there, streams);
  });
}

template <bool is_maximum>
HWY_NOINLINE void channels_backward_row(const PoolPlanes& g, const PoolArrays& a, const Divider<Tag>& divided,
                                        const Soon& soon, const Soon& indices_soon, std::int64_t unit,
                                        const Windows& rows) {
  const std::int64_t plane = unit / g.rows.extent, depth = g.depth, step = soon.bytes_of_unit() / g.columns.extent;
  float* dx = reinterpret_cast<float*>(a.x) + unit * g.columns.extent * depth - a.before;
  Windows columns(g.columns, 0);
  for (std::int64_t w = 0; w < g.columns.extent; ++w, columns.next(), dx += depth) {
    Taps taps;
    for (std::int64_t p = rows.range.first; p < rows.range.end; ++p)
      for (std::int64_t q = columns.range.first; q < columns.range.end; ++q)
        taps.add(((plane * g.rows.outputs + p) * g.columns.outputs + q) * depth,
                 (rows.at - g.rows.begin(p)) * g.columns.taps + w - g.columns.begin(q));
    soon.fetch(unit, w, step);
    if constexpr (is_maximum) indices_soon.fetch(unit, w, step);
    for_count(taps.count, [&]<int count>() { give_gradients<is_maximum, count>(a, depth, divided, taps, dx); });
  }
}

void make_channels(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  const std::int64_t row_bytes = g.columns.outputs * g.depth * 4, y_bytes = g.planes * g.rows.outputs * row_bytes;
  const Soon dy(a.y, y_bytes, g, row_bytes + 1024), indices(a.indices, y_bytes, g, row_bytes + 1024);
  const Divider divided(Tag(), g.rows.taps * g.columns.taps);
  const auto make = [&]<bool is_maximum>() {
    if (!g.backward)
      for (std::int64_t unit = first; unit < end; ++unit) channels_forward_row<is_maximum>(g, a, unit);
    else
      for (Windows rows(g.rows, first % g.rows.extent); first < end; ++first, rows.next())
        channels_backward_row<is_maximum>(g, a, divided, dy, indices, first, rows);
  };
  g.pooling == Pooling::maximum ? make.template operator()<true>() : make.template operator()<false>();
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(make_channels);

void make_pool_channels(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(make_channels)(planes, arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
