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

// Taps [first, first + count) of a window; y and indices have what those before gave.
template <bool is_maximum, int fixed_count>
HWY_NOINLINE void take_taps(const float* x, const Taps& taps, std::int64_t first, std::int64_t some_count,
                            std::int64_t depth, std::int64_t ahead, float divisor, bool streams, float* y,
                            std::int32_t* indices) {
  const Tag d;
  const std::int64_t count = fixed_count > 0 ? fixed_count : some_count;
  const bool is_last = first + count == taps.count;
  for_channels(depth, [&](std::int64_t c, std::int64_t lanes) HWY_ATTR {
    V value = hn::Set(d, is_maximum ? -std::numeric_limits<float>::infinity() : 0.0F);
    auto winner = every_index(d, taps.numbers[0]);
    if (first > 0) {
      value = load(y + c, lanes);
      if constexpr (is_maximum) winner = load(indices + c, lanes);
    }
    for (std::int64_t tap = first; tap < first + count; ++tap) {
      const float* const from = x + taps.offsets[tap] + c;
      if (ahead > 0) hwy::Prefetch(from + ahead);
      take<is_maximum>(d, load(from, lanes), every_index(d, taps.numbers[tap]), value, winner);
    }
    if (!is_maximum && is_last) value = hn::Div(value, hn::Set(d, divisor));
    store(value, y + c, lanes, streams);
    if constexpr (is_maximum) store(hn::BitCast(d, winner), reinterpret_cast<float*>(indices) + c, lanes, streams);
  });
}

template <bool is_maximum>
HWY_NOINLINE void channels_forward_row(const PoolPlanes& g, const PoolArrays& a, const Soon& soon, std::int64_t unit) {
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
    if (ahead == 0) soon.fetch(unit, q, soon.bytes_of_unit() / outputs);
    float* const y = reinterpret_cast<float*>(a.y) + to;
    std::int32_t* const indices = a.indices + to;
    for (std::int64_t first = 0; first < taps.count; first += at_once) {
      const std::int64_t count = std::min(at_once, taps.count - first);
      if (count == 4)
        take_taps<is_maximum, 4>(x, taps, first, count, depth, ahead, divisor, a.streams, y, indices);
      else if (count == 9)
        take_taps<is_maximum, 9>(x, taps, first, count, depth, ahead, divisor, a.streams, y, indices);
      else
        take_taps<is_maximum, 0>(x, taps, first, count, depth, ahead, divisor, a.streams, y, indices);
    }
  }
}

template <bool is_maximum>
HWY_NOINLINE void channels_backward_row(const PoolPlanes& g, const PoolArrays& a, const Soon& soon,
                                        const Soon& indices_soon, std::int64_t unit) {
  const Tag d;
  const std::int64_t plane = unit / g.rows.extent, h = unit % g.rows.extent, depth = g.depth,
                     step = soon.bytes_of_unit() / g.columns.extent;
  const PoolRange rows = g.rows.windows_of(h);
  const float* const dy = reinterpret_cast<const float*>(a.y);
  const Divider divided(d, g.rows.taps * g.columns.taps);
  for (std::int64_t w = 0; w < g.columns.extent; ++w) {
    Taps taps;
    const PoolRange columns = g.columns.windows_of(w);
    for (std::int64_t p = rows.first; p < rows.end; ++p)
      for (std::int64_t q = columns.first; q < columns.end; ++q)
        taps.add(((plane * g.rows.outputs + p) * g.columns.outputs + q) * depth,
                 (h - g.rows.begin(p)) * g.columns.taps + w - g.columns.begin(q));
    soon.fetch(unit, w, step);
    if constexpr (is_maximum) indices_soon.fetch(unit, w, step);
    float* const dx = reinterpret_cast<float*>(a.x) + (unit * g.columns.extent + w) * depth - a.before;
    for_channels(depth, [&](std::int64_t c, std::int64_t lanes) HWY_ATTR {
      V sum = hn::Zero(d);
      for (std::int64_t tap = 0; tap < taps.count; ++tap) {
        const std::int64_t from = taps.offsets[tap] + c;
        const V more = hn::Add(sum, load(dy + from, lanes));
        if constexpr (is_maximum) {
          const auto is_meant = hn::Eq(load(a.indices + from, lanes), every_index(d, taps.numbers[tap]));
          sum = hn::IfThenElse(hn::RebindMask(d, is_meant), more, sum);
        } else {
          sum = more;
        }
      }
      if constexpr (!is_maximum) sum = divided(sum);
      store(sum, dx + c, lanes, a.streams);
    });
  }
}

void make_channels(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  const std::int64_t pixel = 4 * g.depth, x_bytes = g.planes * g.rows.extent * g.columns.extent * pixel,
                     y_bytes = g.planes * g.rows.outputs * g.columns.outputs * pixel;
  const Soon x(a.x, x_bytes, g, x_bytes / g.units() + 1024), dy(a.y, y_bytes, g, g.columns.outputs * pixel + 1024),
      indices(a.indices, y_bytes, g, g.columns.outputs * pixel + 1024);
  const auto make = [&]<bool is_maximum>() {
    for (std::int64_t unit = first; unit < end; ++unit)
      g.backward ? channels_backward_row<is_maximum>(g, a, dy, indices, unit)
                 : channels_forward_row<is_maximum>(g, a, x, unit);
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
