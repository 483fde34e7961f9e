// Rows of y and of dx from lines: all windows of a row take one of their taps at a time.
#include "operations/pool2d/direct/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/passes.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>

#include "operations/pool2d/direct/lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type>
using Real = std::conditional_t<type == DataType::f64, double, float>;

// What is made at a time: `count` of the row's windows, or positions of dx, from `first` on, of some channels or
// planes.
struct Block {
  std::int64_t plane, planes, first, count, channel, channels, width;
  std::int64_t elements() const { return count * width; }
};

// Calls body(block) for `count` windows or positions of a row from `first` on, in the order of the array.
template <typename Body>
HWY_INLINE void for_blocks(const PoolPlanes& g, std::int64_t plane, std::int64_t first, std::int64_t count,
                           const Body& body) {
  constexpr std::int64_t most = line_elements / 8;  // so that 8 taps of each fit in a line
  const bool turned = g.together > 1;
  const std::int64_t channels = std::min(g.depth, most),
                     at_once = turned ? count : std::clamp<std::int64_t>(most / channels, 1, count);
  for (std::int64_t i = 0; i < count; i += at_once)
    for (std::int64_t c = 0; c < g.depth; c += channels) {
      const std::int64_t there = std::min(channels, g.depth - c);
      body(Block{plane, turned ? std::min(g.together, g.planes - plane) : 1, first + i, std::min(at_once, count - i), c,
                 there, turned ? g.together : there});
    }
}

// Of a row of x or dx, or of y, dy and indices.
HWY_INLINE Part part_of(const PoolPlanes& g, const Block& block, std::int64_t rows, std::int64_t columns,
                        std::int64_t row) {
  return {.start = (block.plane * rows + row) * columns * g.depth,
          .columns = columns,
          .depth = g.depth,
          .channel = block.channel,
          .channels = block.channels,
          .width = block.width,
          .planes = block.planes,
          .plane_elements = rows * columns};
}
HWY_INLINE Part image_part(const PoolPlanes& g, const Block& block, std::int64_t h) {
  return part_of(g, block, g.rows.extent, g.columns.extent, h);
}
HWY_INLINE Part output_part(const PoolPlanes& g, const Block& block, std::int64_t p, std::int64_t first,
                            std::int64_t count) {
  Part part = part_of(g, block, g.rows.outputs, g.columns.outputs, p);
  part.first = first;
  part.positions = count;
  return part;
}

// Calls body(q) for those of windows [first, first + count) that reach beyond the image.
template <typename Body>
HWY_INLINE void for_edges(const PoolAxis& axis, std::int64_t first, std::int64_t count, const Body& body) {
  std::int64_t q = std::max<std::int64_t>(first, 0), end = std::min(first + count, axis.outputs);
  for (; q < end && axis.begin(q) < 0; ++q) body(q);
  for (; q < end && axis.begin(end - 1) + axis.taps > axis.extent; --end) body(end - 1);
}

// Divides sums, or gradients, of windows [first, first + count) of row p by what each has.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void divide(D d, const PoolPlanes& g, const Block& block, std::int64_t p, std::int64_t first,
                       std::int64_t count, T* values, T* divisors) {
  const bool inside = g.pooling == Pooling::average_inside;
  const std::int64_t rows = inside ? g.rows.taps_of(p).count() : g.rows.taps, elements = count * block.width;
  fill(d, divisors, elements, static_cast<T>(rows * g.columns.taps));
  if (inside)
    for_edges(g.columns, first, count, [&](std::int64_t q) HWY_ATTR {
      std::fill_n(divisors + (q - first) * block.width, block.width,
                  static_cast<T>(rows * g.columns.taps_of(q).count()));
    });
  for (std::int64_t e = 0; e < elements; e += lanes_of(d))
    hn::StoreU(hn::Div(hn::LoadU(d, values + e), hn::LoadU(d, divisors + e)), d, values + e);
}

template <bool is_maximum, class D, typename T = hn::TFromD<D>>
HWY_INLINE void begin_windows(D d, const PoolPlanes& g, const Block& block, std::int64_t p, Lines<T>& lines) {
  if constexpr (!is_maximum) return fill(d, lines.values, block.elements(), T{0});
  // The index of the window's first element, which is the winner also where nothing is greater than minus infinity; so
  // what stands for padding, which is that, never wins.
  const std::int64_t first = g.rows.taps_of(p).first * g.columns.taps;
  const auto index = [](std::int64_t value) { return std::bit_cast<T>(static_cast<Integer<T>>(value)); };
  fill(d, lines.values, block.elements(), -std::numeric_limits<T>::infinity());
  fill(d, lines.indices, block.elements(), index(first));
  for_edges(g.columns, block.first, block.count, [&](std::int64_t q) {
    std::fill_n(lines.indices + (q - block.first) * block.width, block.width,
                index(first + g.columns.taps_of(q).first));
  });
}

// Taps of a line, whose first is number `index` of its window.
template <bool is_maximum, class D, typename T = hn::TFromD<D>>
HWY_INLINE void take_taps(D d, const Part& part, std::int64_t elements, std::int64_t taps, std::int64_t index,
                          Lines<T>& lines) {
  const std::int64_t pitch = part.pitch();
  const auto one = every_index(d, 1);
  for (std::int64_t e = 0; e < elements; e += lanes_of(d)) {
    auto value = hn::LoadU(d, lines.values + e);
    auto winner = hn::BitCast(IndexTag<D>(), hn::LoadU(d, lines.indices + e));
    auto candidate = every_index(d, index);
    const T* from = lines.read + e;
    for (std::int64_t s = 0; s < taps; from += part.width) {
      const T* at = from;
      for (std::int64_t phase = 0; phase < part.phases && s < taps; ++phase, ++s, at += pitch) {
        const auto x = hn::LoadU(d, at);
        if constexpr (is_maximum) {
          // Comparisons with NaN are false: a NaN is not at most the best so far, and a best that is NaN does not equal
          // itself.
          const auto wins = hn::AndNot(hn::Le(x, value), hn::Eq(value, value));
          value = hn::IfThenElse(wins, x, value);
          winner = hn::IfThenElse(hn::RebindMask(IndexTag<D>(), wins), candidate, winner);
          candidate = hn::Add(candidate, one);
        } else {
          value = hn::Add(value, x);
        }
      }
    }
    hn::StoreU(value, d, lines.values + e);
    if constexpr (is_maximum) hn::StoreU(hn::BitCast(d, winner), d, lines.indices + e);
  }
}

// A NaN of 16 bits may have been changed when it was widened and narrowed: it is copied.
template <DataType type, typename T>
void copy_nans(const PoolPlanes& g, const PoolArrays& a, const Block& block, std::int64_t p, const Lines<T>& lines) {
  const Part to = output_part(g, block, p, block.first, block.count);
  for (std::int64_t e = 0; e < block.elements(); ++e) {
    const std::int64_t q = block.first + e / block.width, i = e % block.width;
    if (lines.values[e] == lines.values[e] || (to.is_turned() && i >= block.planes)) continue;
    const std::int64_t index = std::bit_cast<Integer<T>>(lines.indices[e]), r = index / g.columns.taps;
    const Part from = image_part(g, block, g.rows.begin(p) + r);
    const auto at = [&](const Part& part, std::int64_t column) {
      return part.at(column) + i * (part.is_turned() ? part.plane_elements : 1);
    };
    std::memcpy(a.y + (at(to, q) - a.before) * bytes_of<type>,
                a.x + at(from, g.columns.begin(q) + index % g.columns.taps) * bytes_of<type>, bytes_of<type>);
  }
}

// Taps that are read at a time, so that they fit in a line.
HWY_INLINE std::int64_t taps_at_once(const PoolPlanes& g, const Block& block) {
  const std::int64_t stride = g.columns.stride;
  std::int64_t taps = g.columns.taps;
  const auto elements = [&] {
    return std::min(stride, taps) * round_up((block.count + (taps - 1) / stride) * block.width, Part::most_lanes);
  };
  while (elements() > line_elements) taps = (taps + 1) / 2;
  return taps;
}

template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_NOINLINE void forward_row(const PoolPlanes& g, const PoolArrays& a, std::int64_t plane, std::int64_t p,
                              Lines<T>& lines) {
  const hn::ScalableTag<T> d;
  const T outside = is_maximum ? -std::numeric_limits<T>::infinity() : T{0};
  const PoolRange rows = g.rows.taps_of(p);
  for_blocks(g, plane, 0, g.columns.outputs, [&](const Block& block) HWY_ATTR {
    const std::int64_t stride = g.columns.stride, all = g.columns.taps, at_once = taps_at_once(g, block);
    begin_windows<is_maximum>(d, g, block, p, lines);
    for (std::int64_t r = rows.first; r < rows.end; ++r) {
      Part from = image_part(g, block, g.rows.begin(p) + r);
      from.step = stride;
      for (std::int64_t s = 0; s < all; s += at_once) {
        const std::int64_t taps = std::min(at_once, all - s);
        from.first = g.columns.begin(block.first) + s;
        from.phases = std::min(stride, taps);
        from.positions = block.count + (taps - 1) / stride;
        load_line<type>(d, a.x, from, outside, lines.row, lines.read);
        take_taps<is_maximum>(d, from, block.elements(), taps, r * all + s, lines);
      }
    }
    if constexpr (!is_maximum) divide(d, g, block, p, block.first, block.count, lines.values, lines.read);
    Part to = output_part(g, block, p, block.first, block.count);
    to.start -= a.before;
    store_line<type>(d, lines.values, to, lines.row, a.y);
    if constexpr (is_maximum) {
      store_line<DataType::s32>(d, lines.indices, to, lines.row, reinterpret_cast<std::byte*>(a.indices));
      if constexpr (bytes_of<type> == 2) copy_nans<type>(g, a, block, p, lines);
    }
  });
}

// What taps phase, phase + stride, ... of windows give to dx. The line's first element belongs to the last of `reach`
// windows that the first position may meet; tap number s of `taps` of the nearest is `index`.
template <bool is_maximum, class D, typename T = hn::TFromD<D>>
HWY_INLINE void add_gradients(D d, std::int64_t elements, std::int64_t width, std::int64_t windows, std::int64_t index,
                              std::int64_t stride, std::int64_t nearest, const Lines<T>& lines, T* sums) {
  for (std::int64_t e = 0; e < elements; e += lanes_of(d)) {
    auto sum = hn::LoadU(d, sums + e);
    std::int64_t at = nearest + e, tap = index;
    for (std::int64_t i = 0; i < windows; ++i, at -= width, tap += stride) {
      const auto dy = hn::LoadU(d, lines.read + at);
      if constexpr (is_maximum) {
        const auto indices = hn::BitCast(IndexTag<D>(), hn::LoadU(d, lines.indices + at));
        sum = hn::IfThenElse(hn::RebindMask(d, hn::Eq(indices, every_index(d, tap))), hn::Add(sum, dy), sum);
      } else {
        sum = hn::Add(sum, dy);
      }
    }
    hn::StoreU(sum, d, sums + e);
  }
}

// Phases [phase, phase + phases) of a block of positions of row h.
template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_INLINE void backward_block(const PoolPlanes& g, const PoolArrays& a, const Block& block, std::int64_t h,
                               std::int64_t phase, std::int64_t phases, Lines<T>& lines) {
  const hn::ScalableTag<T> d;
  const std::int64_t stride = g.columns.stride, all = g.columns.taps;
  Part to = image_part(g, block, h);
  to.start -= a.before;
  to.first = block.first * stride + phase - g.columns.pad;
  to.step = stride;
  to.phases = phases;
  to.positions = block.count;
  fill(d, lines.values, phases * to.pitch(), T{0});
  // Windows that meet a position, and those read at a time.
  const std::int64_t meeting = phase < all ? (all - 1 - phase) / stride + 1 : 0,
                     at_once = std::min(meeting, line_elements / block.width - block.count + 1);
  const PoolRange windows = g.rows.windows_of(h);
  for (std::int64_t p = windows.first; p < windows.end; ++p)
    for (std::int64_t before = 0; before < meeting; before += at_once) {
      const std::int64_t some = std::min(at_once, meeting - before), first = block.first - before - some + 1,
                         count = block.count + some - 1;
      const Part from = output_part(g, block, p, first, count);
      load_line<type>(d, a.y, from, T{0}, lines.row, lines.read);
      if constexpr (is_maximum)
        load_line<DataType::s32>(d, reinterpret_cast<const std::byte*>(a.indices), from,
                                 std::bit_cast<T>(Integer<T>{-1}), lines.row, lines.indices);
      else
        divide(d, g, block, p, first, count, lines.read, lines.indices);
      const std::int64_t row = (h - g.rows.begin(p)) * all;
      for (std::int64_t k = 0; k < phases; ++k) {
        const std::int64_t tap = phase + k + before * stride;
        if (tap >= all) break;
        const std::int64_t there = std::min(some, (all - 1 - tap) / stride + 1);
        add_gradients<is_maximum>(d, block.elements(), block.width, there, row + tap, stride, (some - 1) * block.width,
                                  lines, lines.values + k * to.pitch());
      }
    }
  store_line<type>(d, lines.values, to, lines.row, a.x);
}

template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_NOINLINE void backward_row(const PoolPlanes& g, const PoolArrays& a, std::int64_t plane, std::int64_t h,
                               Lines<T>& lines) {
  const std::int64_t stride = g.columns.stride;
  for_blocks(g, plane, g.first_position, g.positions, [&](const Block& block) HWY_ATTR {
    const std::int64_t pitch = round_up(block.elements(), Part::most_lanes),
                       at_once = std::clamp<std::int64_t>(line_elements / pitch, 1, stride);
    for (std::int64_t phase = 0; phase < stride; phase += at_once)
      backward_block<type, is_maximum>(g, a, block, h, phase, std::min(at_once, stride - phase), lines);
  });
}

template <DataType type, bool is_maximum>
void make_units_of(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  Lines<Real<type>> lines;
  const auto make = [&](std::int64_t plane, std::int64_t row) {
    if (g.backward)
      backward_row<type, is_maximum>(g, a, plane, row, lines);
    else
      forward_row<type, is_maximum>(g, a, plane, row, lines);
  };
  const std::int64_t rows = g.backward ? g.rows.extent : g.rows.outputs;
  for (std::int64_t unit = first; unit < end; ++unit)
    if (g.together == 1)
      make(unit / rows, unit % rows);
    else
      for (std::int64_t row = 0; row < rows; ++row) make(unit * g.together, row);
}

void make_units(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  const auto make = [&]<DataType type>() {
    if (g.pooling == Pooling::maximum)
      make_units_of<type, true>(g, a, first, end);
    else
      make_units_of<type, false>(g, a, first, end);
  };
  switch (g.type) {
    case DataType::f16: return make.template operator()<DataType::f16>();
    case DataType::bf16: return make.template operator()<DataType::bf16>();
    case DataType::f64: return make.template operator()<DataType::f64>();
    default: return make.template operator()<DataType::f32>();
  }
}

void stream(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::int64_t lanes = lanes_of(d);
  const auto misaligned = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(to) % hn::Lanes(d));
  std::int64_t i = misaligned == 0 ? 0 : std::min(lanes - misaligned, bytes);
  std::memcpy(to, from, static_cast<std::size_t>(i));
  for (; i + lanes <= bytes; i += lanes)
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + i)), d,
               reinterpret_cast<std::uint8_t*>(to + i));
  std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(make_units);
HWY_EXPORT(stream);

void make_pool_units(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(make_units)(planes, arrays, first, end);
}
void pool_stream(std::byte* to, const std::byte* from, std::int64_t bytes) {
  HWY_DYNAMIC_DISPATCH(stream)(to, from, bytes);
}
void pool_stream_done() {
  hwy::FlushStream();
}

}  // namespace omniconv::kernels
#endif
