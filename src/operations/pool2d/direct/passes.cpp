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

// What is made at a time: of rows `row` + i * row_step of a plane, or of one row of several, the `count` windows, or
// positions of dx, from `first` on, of some channels. `row_positions` lie between rows in lines.
struct Block {
  std::int64_t plane = 0, planes = 1, row = 0, row_step = 1, rows = 1, first = 0, count = 1, row_positions = 1;
  std::int64_t channel = 0, channels = 1, width = 1;
  // As far as vectors go.
  std::int64_t elements() const { return ((rows - 1) * row_positions + count) * width; }
};

constexpr std::int64_t block_elements = line_elements / 8;  // so that 8 taps of each fit in a line

// Of x or dx; of y, dy and indices.
HWY_INLINE Part part_of(const PoolPlanes& g, const Block& block, std::int64_t height, std::int64_t columns) {
  Part part;
  part.start = block.plane * height * columns * g.depth;
  part.height = height;
  part.columns = columns;
  part.depth = g.depth;
  part.channel = block.channel;
  part.channels = block.channels;
  part.rows = block.rows;
  part.row_positions = block.row_positions;
  part.turned = g.together > 1;
  part.planes = block.planes;
  return part;
}
HWY_INLINE Part image_part(const PoolPlanes& g, const Block& block) {
  return part_of(g, block, g.rows.extent, g.columns.extent);
}
HWY_INLINE Part output_part(const PoolPlanes& g, const Block& block) {
  return part_of(g, block, g.rows.outputs, g.columns.outputs);
}

// Calls body(block) for `count` windows or positions from `first` on of `rows` rows from `row` on, `row_step` apart, as
// many of whole rows as a block holds. `beyond`: positions that a line has beside them.
template <typename Body>
HWY_INLINE void for_blocks(const PoolPlanes& g, Block block, std::int64_t rows, std::int64_t first, std::int64_t count,
                           std::int64_t beyond, const Body& body) {
  const bool turned = g.together > 1;
  const std::int64_t channels = std::min(g.depth, block_elements),
                     at_once = turned ? count : std::clamp<std::int64_t>(block_elements / channels, 1, count),
                     most_rows = turned ? 1 : std::max<std::int64_t>(block_elements / (channels * (count + beyond)), 1),
                     row = block.row;
  block.planes = std::min(g.together, g.planes - block.plane);
  for (std::int64_t i = 0; i < rows; i += most_rows) {
    block.row = row + i * block.row_step;
    block.rows = std::min(most_rows, rows - i);
    for (std::int64_t j = 0; j < count; j += at_once) {
      block.first = first + j;
      block.count = std::min(at_once, count - j);
      for (block.channel = 0; block.channel < g.depth; block.channel += channels) {
        block.channels = std::min(channels, g.depth - block.channel);
        block.width = turned ? Part::most_planes : block.channels;
        body(block);
      }
    }
  }
}

// Calls body(q) for those of windows [first, first + count) that reach beyond the image.
template <typename Body>
HWY_INLINE void for_edges(const PoolAxis& axis, std::int64_t first, std::int64_t count, const Body& body) {
  std::int64_t q = std::max<std::int64_t>(first, 0), end = std::min(first + count, axis.outputs);
  for (; q < end && axis.begin(q) < 0; ++q) body(q);
  for (; q < end && axis.begin(end - 1) + axis.taps > axis.extent; --end) body(end - 1);
}

// Divides sums, or gradients, of windows [first, first + count) of rows p, p + 1, ... by what each has.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void divide(D d, const PoolPlanes& g, const Block& block, std::int64_t p, std::int64_t first,
                       std::int64_t count, T* values, T* divisors) {
  const std::int64_t row_elements = block.row_positions * block.width;
  for (std::int64_t i = 0; i < block.rows; ++i, ++p) {
    const bool inside = g.pooling == Pooling::average_inside && p >= 0 && p < g.rows.outputs;
    const std::int64_t rows = inside ? g.rows.taps_of(p).count() : g.rows.taps;
    T* const row = divisors + i * row_elements;
    fill(d, row, row_elements, static_cast<T>(rows * g.columns.taps));
    if (inside)
      for_edges(g.columns, first, count, [&](std::int64_t q) HWY_ATTR {
        std::fill_n(row + (q - first) * block.width, block.width, static_cast<T>(rows * g.columns.taps_of(q).count()));
      });
  }
  for (std::int64_t e = 0; e < block.rows * row_elements; e += lanes_of(d))
    hn::StoreU(hn::Div(hn::LoadU(d, values + e), hn::LoadU(d, divisors + e)), d, values + e);
}

template <bool is_maximum, class D, typename T = hn::TFromD<D>>
HWY_INLINE void begin_windows(D d, const PoolPlanes& g, const Block& block, Lines<T>& lines) {
  const std::int64_t row_elements = block.row_positions * block.width;
  if constexpr (!is_maximum) return fill(d, lines.values, block.rows * row_elements, T{0});
  fill(d, lines.values, block.rows * row_elements, -std::numeric_limits<T>::infinity());
  // The index of the window's first element, which is the winner also where nothing is greater than minus infinity; so
  // what stands for padding, which is that, never wins.
  const auto index = [](std::int64_t value) { return std::bit_cast<T>(static_cast<Integer<T>>(value)); };
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const std::int64_t first = g.rows.taps_of(block.row + i).first * g.columns.taps;
    T* const row = lines.indices + i * row_elements;
    fill(d, row, row_elements, index(first));
    for_edges(g.columns, block.first, block.count, [&](std::int64_t q) {
      std::fill_n(row + (q - block.first) * block.width, block.width, index(first + g.columns.taps_of(q).first));
    });
  }
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
    for (std::int64_t s = 0; s < taps; from += part.width()) {
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
void copy_nans(const PoolPlanes& g, const PoolArrays& a, const Block& block, const Lines<T>& lines) {
  const Part from = image_part(g, block);
  Part to = output_part(g, block);
  to.start -= a.before;
  const std::int64_t there = to.turned ? block.planes : block.width;
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (std::int64_t j = 0; j < block.count; ++j)
      for (std::int64_t k = 0; k < there; ++k) {
        const std::int64_t e = (i * block.row_positions + j) * block.width + k, p = block.row + i, q = block.first + j;
        if (lines.values[e] == lines.values[e]) continue;
        const std::int64_t index = std::bit_cast<Integer<T>>(lines.indices[e]), r = index / g.columns.taps;
        const auto at = [&](const Part& part, std::int64_t row, std::int64_t column) {
          return part.at(0, column) + row * part.columns * part.depth + k * (part.turned ? part.plane_elements() : 1);
        };
        std::memcpy(a.y + at(to, p, q) * bytes_of<type>,
                    a.x + at(from, g.rows.begin(p) + r, g.columns.begin(q) + index % g.columns.taps) * bytes_of<type>,
                    bytes_of<type>);
      }
}

// Taps that are read at a time, so that they fit in a line.
HWY_INLINE std::int64_t taps_at_once(const PoolPlanes& g, const Block& block) {
  const std::int64_t stride = g.columns.stride;
  std::int64_t taps = g.columns.taps;
  const auto elements = [&] {
    const std::int64_t positions = block.count + (taps - 1) / stride;
    return std::min(stride, taps) * Part::aligned(block.rows * positions * block.width);
  };
  while (elements() > line_elements) taps = (taps + 1) / 2;
  return taps;
}

// Rows [row, row + rows) of a plane of y.
template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_NOINLINE void forward_rows(const PoolPlanes& g, const PoolArrays& a, std::int64_t plane, std::int64_t first_row,
                               std::int64_t rows, Lines<T>& lines) {
  const hn::ScalableTag<T> d;
  const std::int64_t stride = g.columns.stride, all = g.columns.taps;
  const T outside = is_maximum ? -std::numeric_limits<T>::infinity() : T{0};
  const auto make = [&](Block block) HWY_ATTR {
    const std::int64_t at_once = taps_at_once(g, block);
    block.row_positions = block.count + (at_once - 1) / stride;
    begin_windows<is_maximum>(d, g, block, lines);
    Part from = image_part(g, block);
    from.row_step = g.rows.stride;
    from.step = stride;
    // Those of the first window or the last that are inside, and with them all between.
    const std::int64_t begin = g.rows.taps_of(block.row + block.rows - 1).first, end = g.rows.taps_of(block.row).end;
    for (std::int64_t r = begin; r < end; ++r)
      for (std::int64_t s = 0; s < all; s += at_once) {
        const std::int64_t taps = std::min(at_once, all - s);
        from.row = g.rows.begin(block.row) + r;
        from.first = g.columns.begin(block.first) + s;
        from.phases = std::min(stride, taps);
        from.positions = block.count + (taps - 1) / stride;
        load_line<type>(d, a.x, from, outside, lines.row, lines.read);
        take_taps<is_maximum>(d, from, block.elements(), taps, r * all + s, lines);
      }
    if constexpr (!is_maximum) divide(d, g, block, block.row, block.first, block.count, lines.values, lines.read);
    Part to = output_part(g, block);
    to.start -= a.before;
    to.row = block.row;
    to.first = block.first;
    to.positions = block.count;
    store_line<type>(d, lines.values, to, lines.row, a.y);
    if constexpr (is_maximum) {
      store_line<DataType::s32>(d, lines.indices, to, lines.row, reinterpret_cast<std::byte*>(a.indices));
      if constexpr (bytes_of<type> == 2) copy_nans<type>(g, a, block, lines);
    }
  };
  const Block block{.plane = plane, .row = first_row, .row_step = 1};
  for_blocks(g, block, rows, 0, g.columns.outputs, (all - 1) / stride, make);
}

// What taps `index`, index + stride, ... of as many windows give to dx, each of them the window before; `nearest`
// elements of the line lie before the first of those windows.
template <bool is_maximum, class D, typename T = hn::TFromD<D>>
HWY_INLINE void add_gradients(D d, const Block& block, std::int64_t windows, std::int64_t index, std::int64_t stride,
                              std::int64_t nearest, const Lines<T>& lines, T* sums) {
  for (std::int64_t e = 0; e < block.elements(); e += lanes_of(d)) {
    auto sum = hn::LoadU(d, sums + e);
    std::int64_t at = nearest + e, tap = index;
    for (std::int64_t i = 0; i < windows; ++i, at -= block.width, tap += stride) {
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

// Phases [phase, phase + phases) of a block of positions, whose rows are met by the same taps.
template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_INLINE void backward_block(const PoolPlanes& g, const PoolArrays& a, Block block, std::int64_t phase,
                               std::int64_t phases, Lines<T>& lines) {
  const hn::ScalableTag<T> d;
  const std::int64_t stride = g.columns.stride, all = g.columns.taps, reach = block.row + g.rows.pad;
  // Windows that meet a position, and those read at a time.
  const std::int64_t meeting = phase < all ? (all - 1 - phase) / stride + 1 : 0,
                     at_once = std::min(meeting, line_elements / (block.rows * block.width) - block.count + 1);
  block.row_positions = block.count + std::max<std::int64_t>(at_once, 1) - 1;
  Part to = image_part(g, block);
  to.start -= a.before;
  to.row = block.row;
  to.row_step = g.rows.stride;
  to.first = block.first * stride + phase - g.columns.pad;
  to.step = stride;
  to.phases = phases;
  to.positions = block.count;
  fill(d, lines.values, phases * to.pitch(), T{0});
  Part from = output_part(g, block);
  for (std::int64_t r = reach % g.rows.stride; r < g.rows.taps; r += g.rows.stride)
    for (std::int64_t before = 0; before < meeting; before += at_once) {
      const std::int64_t some = std::min(at_once, meeting - before);
      from.row = (reach - r) / g.rows.stride;
      from.first = block.first - before - some + 1;
      from.positions = block.count + some - 1;
      if (from.row + from.rows <= 0 || from.row >= g.rows.outputs) continue;
      load_line<type>(d, a.y, from, T{0}, lines.row, lines.read);
      if constexpr (is_maximum)
        load_line<DataType::s32>(d, reinterpret_cast<const std::byte*>(a.indices), from,
                                 std::bit_cast<T>(Integer<T>{-1}), lines.row, lines.indices);
      else
        divide(d, g, block, from.row, from.first, from.positions, lines.read, lines.indices);
      const std::int64_t nearest = phase + before * stride, beyond = (all - 1 - nearest) / stride,
                         rest = (all - 1 - nearest) % stride;
      for (std::int64_t k = 0; k < std::min(phases, all - nearest); ++k)
        add_gradients<is_maximum>(d, block, std::min(some, beyond + (k <= rest ? 1 : 0)), r * all + nearest + k, stride,
                                  (some - 1) * block.width, lines, lines.values + k * to.pitch());
    }
  store_line<type>(d, lines.values, to, lines.row, a.x);
}

// Rows [row, row + rows) of a plane of dx. Those a stride apart are met by the same taps.
template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_NOINLINE void backward_rows(const PoolPlanes& g, const PoolArrays& a, std::int64_t plane, std::int64_t first_row,
                                std::int64_t rows, Lines<T>& lines) {
  const std::int64_t stride = g.columns.stride, beyond = (g.columns.taps - 1) / stride;
  const auto make = [&](const Block& block) HWY_ATTR {
    const std::int64_t elements = Part::aligned(block.rows * (block.count + beyond) * block.width),
                       at_once = std::clamp<std::int64_t>(line_elements / elements, 1, stride);
    for (std::int64_t phase = 0; phase < stride; phase += at_once)
      backward_block<type, is_maximum>(g, a, block, phase, std::min(at_once, stride - phase), lines);
  };
  for (std::int64_t i = 0; i < std::min(rows, g.rows.stride); ++i) {
    const Block block{.plane = plane, .row = first_row + i, .row_step = g.rows.stride};
    for_blocks(g, block, (rows - i - 1) / g.rows.stride + 1, g.first_position, g.positions, beyond, make);
  }
}

template <DataType type, bool is_maximum>
void make_units_of(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  Lines<Real<type>> lines;
  const std::int64_t rows = g.backward ? g.rows.extent : g.rows.outputs;
  const auto make = [&](std::int64_t plane, std::int64_t row, std::int64_t count) {
    if (g.backward)
      backward_rows<type, is_maximum>(g, a, plane, row, count, lines);
    else
      forward_rows<type, is_maximum>(g, a, plane, row, count, lines);
  };
  if (g.together > 1) {
    for (std::int64_t unit = first; unit < end; ++unit) make(unit * g.together, 0, rows);
    return;
  }
  for (std::int64_t unit = first, count = 0; unit < end; unit += count) {
    const std::int64_t row = unit % rows;
    count = std::min(rows - row, end - unit);
    make(unit / rows, row, count);
  }
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
