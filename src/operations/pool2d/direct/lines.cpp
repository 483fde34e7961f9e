// The form for everything: rows of y and of dx from lines.
#include "operations/pool2d/direct/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/lines.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "operations/pool2d/direct/lines-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What is made at a time: of rows [row, row + rows) of a plane `count` windows, or positions of dx, from `first` on, of
// some channels.
struct Block {
  std::int64_t plane = 0, row = 0, rows = 1, first = 0, count = 1, channel = 0, channels = 1;
};

// How far a window reaches: positions of rows and columns beyond its own.
struct Reach {
  explicit Reach(const PoolPlanes& g)
      : rows((g.rows.taps - 1) / g.rows.stride), columns((g.columns.taps - 1) / g.columns.stride) {}
  std::int64_t rows, columns;
};

// Calls body(block) for rows [row, row + rows) of the plane of `block`, as many at once as a line holds with all that
// their windows reach, if it holds so much; each of their elements takes `phases` of the line.
template <typename Body>
HWY_INLINE void for_blocks(const PoolPlanes& g, Block block, std::int64_t rows, std::int64_t first, std::int64_t count,
                           std::int64_t phases, const Body& body) {
  const Reach reach(g);
  const std::int64_t channels = std::min<std::int64_t>(g.depth, line_elements / 8), end = block.row + rows;
  // Pixels that a line has room for, rounded up as its phases are.
  const std::int64_t most = std::max<std::int64_t>((line_elements / phases - 32) / channels, 1),
                     side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(most)));
  std::int64_t at_once = 1, columns = std::clamp<std::int64_t>(most / 8, 1, count);  // where no window fits
  if ((1 + reach.rows) * (count + reach.columns) <= most) {
    columns = count;
    at_once = std::min(rows, most / (count + reach.columns) - reach.rows);
  } else if (side > std::max(reach.rows, reach.columns)) {  // squares reach the least
    at_once = std::min(rows, side - reach.rows);
    columns = std::min(count, most / (at_once + reach.rows) - reach.columns);
  }
  for (; block.row < end; block.row += at_once) {
    block.rows = std::min(at_once, end - block.row);
    for (std::int64_t j = 0; j < count; j += columns) {
      block.first = first + j;
      block.count = std::min(columns, count - j);
      for (block.channel = 0; block.channel < g.depth; block.channel += channels) {
        block.channels = std::min(channels, g.depth - block.channel);
        body(static_cast<const Block&>(block));
      }
    }
  }
}

// Of x or dx; of y, dy and indices.
HWY_INLINE Part part_of(const PoolPlanes& g, const Block& block, std::int64_t height, std::int64_t columns) {
  Part part;
  part.plane_elements = height * columns * g.depth;
  part.start = block.plane * part.plane_elements;
  part.row_end = height;
  part.columns = columns;
  part.depth = g.depth;
  part.channel = block.channel;
  part.channels = block.channels;
  return part;
}
HWY_INLINE Part image_part(const PoolPlanes& g, const Block& block) {
  return part_of(g, block, g.rows.extent, g.columns.extent);
}
HWY_INLINE Part output_part(const PoolPlanes& g, const Block& block) {
  return part_of(g, block, g.rows.outputs, g.columns.outputs);
}

// Calls body(q) for those of windows [first, first + count) that reach beyond the image.
template <typename Body>
HWY_INLINE void for_edges(const PoolAxis& axis, std::int64_t first, std::int64_t count, const Body& body) {
  std::int64_t q = std::max<std::int64_t>(first, 0), end = std::min(first + count, axis.outputs);
  for (; q < end && axis.begin(q) < 0; ++q) body(q);
  for (; q < end && axis.begin(end - 1) + axis.taps > axis.extent; --end) body(end - 1);
}

// Divides sums, or gradients, of windows [first, first + positions) of rows p, p + 1, ... by what each has.
template <class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void divide(D d, const PoolPlanes& g, const Part& part, T* values, T* divisors) {
  const std::int64_t width = part.channels, row_elements = part.row_positions * width;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const std::int64_t p = part.row + i;
    const bool inside = g.pooling == Pooling::average_inside && p >= 0 && p < g.rows.outputs;
    const std::int64_t rows = inside ? g.rows.taps_of(p).count() : g.rows.taps;
    T* const row = divisors + i * row_elements;
    fill(d, row, row_elements, static_cast<T>(rows * g.columns.taps));
    if (inside)
      for_edges(g.columns, part.first, part.positions, [&](std::int64_t q) HWY_ATTR {
        std::fill_n(row + (q - part.first) * width, width, static_cast<T>(rows * g.columns.taps_of(q).count()));
      });
  }
  for (std::int64_t e = 0; e < part.rows * row_elements; e += lanes_of(d))
    hn::StoreU(hn::Div(hn::LoadU(d, values + e), hn::LoadU(d, divisors + e)), d, values + e);
}

// `part`: the windows, in lines of as many positions as those of what they meet.
template <class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void begin_maxima(D d, const PoolPlanes& g, const Part& part, Lines<T>& lines) {
  const std::int64_t width = part.channels, row_elements = part.row_positions * width;
  // The index of the window's first element, which is the winner also where nothing is greater than minus infinity; so
  // what stands for padding, which is that, never wins.
  const auto index = [](std::int64_t value) { return std::bit_cast<T>(static_cast<Integer<T>>(value)); };
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const std::int64_t first = g.rows.taps_of(part.row + i).first * g.columns.taps;
    T* const row = lines.indices + i * row_elements;
    fill(d, row, row_elements, index(first));
    for_edges(g.columns, part.first, part.positions, [&](std::int64_t q) {
      std::fill_n(row + (q - part.first) * width, width, index(first + g.columns.taps_of(q).first));
    });
  }
}

// What the next block will read is asked for while this one is made: so many bytes for each of its elements.
struct NextBlock {
  HWY_INLINE void fetch(std::int64_t e, std::int64_t lanes) const {
    for (std::int64_t i = 0; i < lanes * bytes; i += 64) hwy::Prefetch(from + e * bytes + i);
  }
  const std::byte* from = nullptr;
  std::int64_t bytes = 0;
};

// Taps that a line has, the first of which is number `index` of its window; before it there is what stands outside.
template <bool is_maximum, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void take_taps(D d, std::int64_t elements, std::int64_t taps, std::int64_t index, T outside,
                            const NextBlock& next, Lines<T>& lines) {
  const std::int32_t* const offsets = lines.offsets;
  const auto one = every_index(d, 1), first = every_index(d, index);
  for (std::int64_t e = 0; e < elements; e += lanes_of(d)) {
    const T* const read = lines.read + e;
    next.fetch(e, lanes_of(d));
    auto value = index == 0 ? hn::Set(d, outside) : hn::LoadU(d, lines.values + e);
    auto winner = hn::BitCast(IndexTag<D>(), hn::LoadU(d, lines.indices + e)), candidate = first;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      take<is_maximum>(d, hn::LoadU(d, read + offsets[tap]), candidate, value, winner);
      candidate = hn::Add(candidate, one);
    }
    hn::StoreU(value, d, lines.values + e);
    if constexpr (is_maximum) hn::StoreU(hn::BitCast(d, winner), d, lines.indices + e);
  }
}

// A NaN of 16 bits may have been changed when it was widened and narrowed: it is copied.
template <DataType type, typename T>
void copy_nans(const PoolPlanes& g, const PoolArrays& a, const Block& block, const Part& to, const Lines<T>& lines) {
  const Part from = image_part(g, block);
  const auto at = [](const Part& part, std::int64_t row, std::int64_t column, std::int64_t k) {
    return (part.in_array(row, column) + k) * bytes_of<type>;
  };
  for (std::int64_t i = 0; i < block.rows; ++i)
    for (std::int64_t j = 0; j < block.count; ++j)
      for (std::int64_t k = 0; k < block.channels; ++k) {
        const std::int64_t e = (i * to.row_positions + j) * to.channels + k, p = block.row + i, q = block.first + j;
        if (lines.values[e] == lines.values[e]) continue;
        const std::int64_t index = std::bit_cast<Integer<T>>(lines.indices[e]), r = index / g.columns.taps,
                           s = index % g.columns.taps;
        std::memcpy(a.y + at(to, p, q, k), a.x + at(from, g.rows.begin(p) + r, g.columns.begin(q) + s, k),
                    bytes_of<type>);
      }
}

// Where in a line the first window's taps are.
HWY_INLINE void set_offsets(const Part& part, std::int64_t rows, std::int64_t columns, std::int32_t* offsets) {
  std::int64_t i = 0, row_phase = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t j = 0, phase = 0;
    for (std::int64_t s = 0; s < columns; ++s) {
      *offsets++ = static_cast<std::int32_t>(part.at(row_phase, phase, i, j));
      if (++phase == part.step) phase = 0, ++j;
    }
    if (++row_phase == part.row_step) row_phase = 0, ++i;
  }
}

// Rows [row, row + rows) of a plane of y.
template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_NOINLINE void forward_rows(const PoolPlanes& g, const PoolArrays& a, std::int64_t plane, std::int64_t first_row,
                               std::int64_t rows, Lines<T>& lines) {
  const hn::ScalableTag<T> d;
  const T outside = is_maximum ? -std::numeric_limits<T>::infinity() : T{0};
  const std::int64_t stride_h = g.rows.stride, stride_w = g.columns.stride;
  const auto make = [&](const Block& block) HWY_ATTR {
    Part from = image_part(g, block);
    from.row_step = stride_h;
    from.step = stride_w;
    const auto set_taps = [&](std::int64_t tap_rows, std::int64_t taps) {
      from.row_phases = std::min(stride_h, tap_rows);
      from.rows = block.rows + (tap_rows - 1) / stride_h;
      from.phases = std::min(stride_w, taps);
      from.positions = from.row_positions = block.count + (taps - 1) / stride_w;
      from.needed_rows = (block.rows - 1) * stride_h + tap_rows;
    };
    // Those that fit in a line: whole rows of windows, or a part of one.
    std::int64_t tap_rows = g.rows.taps, taps = g.columns.taps;
    for (set_taps(tap_rows, taps); from.elements() > line_elements; set_taps(tap_rows, taps))
      (tap_rows > 1 ? tap_rows : taps) = ((tap_rows > 1 ? tap_rows : taps) + 1) / 2;

    Part to = output_part(g, block);
    to.start -= a.before;
    to.row = block.row;
    to.rows = block.rows;
    to.first = block.first;
    to.positions = block.count;
    to.row_positions = from.positions;
    if constexpr (is_maximum) begin_maxima(d, g, to, lines);
    const std::int64_t elements = ((block.rows - 1) * to.row_positions + block.count) * to.channels;
    NextBlock next;
    if (g.depth == 1)
      next = {a.x + from.in_array(g.rows.begin(block.row + block.rows), 0) * bytes_of<type>,
              (block.rows * stride_h * g.columns.extent * bytes_of<type> + elements - 1) / elements};
    for (std::int64_t r = 0; r < g.rows.taps; r += tap_rows)
      for (std::int64_t s = 0; s < g.columns.taps; s += taps) {
        from.row = g.rows.begin(block.row) + r;
        from.first = g.columns.begin(block.first) + s;
        load_line<type>(d, a.x, from, outside, lines.read);
        const std::int64_t rows_there = std::min(tap_rows, g.rows.taps - r), there = std::min(taps, g.columns.taps - s);
        set_offsets(from, rows_there, there, lines.offsets);
        take_taps<is_maximum>(d, elements, rows_there * there, r * g.columns.taps + s, outside, next, lines);
      }
    if constexpr (!is_maximum) divide(d, g, to, lines.values, lines.read);
    store_line<type>(d, lines.values, to, lines.row, a.y);
    if constexpr (is_maximum) {
      store_line<DataType::s32>(d, lines.indices, to, lines.row, reinterpret_cast<std::byte*>(a.indices));
      if constexpr (bytes_of<type> == 2) copy_nans<type>(g, a, block, to, lines);
    }
  };
  Block block;
  block.plane = plane;
  block.row = first_row;
  const std::int64_t phases = std::min(stride_h, g.rows.taps) * std::min(stride_w, g.columns.taps);
  for_blocks(g, block, rows, 0, g.columns.outputs, phases, make);
}

// What so many taps give to dx.
template <bool is_maximum, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void add_gradients(D d, std::int64_t elements, std::int64_t taps, bool is_first, const Lines<T>& lines,
                                T* sums) {
  const IndexTag<D> integers;
  for (std::int64_t e = 0; e < elements; e += lanes_of(d)) {
    auto sum = is_first ? hn::Zero(d) : hn::LoadU(d, sums + e);
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t at = e + lines.offsets[tap];
      const auto dy = hn::LoadU(d, lines.read + at);
      if constexpr (is_maximum) {
        const auto index = hn::Set(integers, static_cast<Integer<T>>(lines.tap_indices[tap])),
                   winner = hn::BitCast(integers, hn::LoadU(d, lines.indices + at));
        sum = hn::IfThenElse(hn::RebindMask(d, hn::Eq(winner, index)), hn::Add(sum, dy), sum);
      } else {
        sum = hn::Add(sum, dy);
      }
    }
    hn::StoreU(sum, d, sums + e);
  }
}

// Of rows [begin, end) of a plane of dx those that are at the positions of a block.
template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_NOINLINE void backward_block(const PoolPlanes& g, const PoolArrays& a, const Block& block, std::int64_t begin,
                                 std::int64_t end, Lines<T>& lines) {
  const hn::ScalableTag<T> d;
  const std::int64_t stride_h = g.rows.stride, stride_w = g.columns.stride;
  const Reach reach(g);
  // How many windows before its own position those that meet one may begin, of those that there are.
  const auto before = [](std::int64_t reached, std::int64_t first, std::int64_t count, std::int64_t outputs) {
    return PoolRange{std::max<std::int64_t>(0, first - outputs + 1), std::min(reached, first + count - 1) + 1};
  };
  const PoolRange above = before(reach.rows, block.row, block.rows, g.rows.outputs),
                  left = before(reach.columns, block.first, block.count, g.columns.outputs);
  // Windows that are read at a time: as many rows of them as meet the block, or a part of one.
  Part from = output_part(g, block);
  std::int64_t window_rows = std::max<std::int64_t>(above.count(), 1),
               windows = std::max<std::int64_t>(left.count(), 1);
  const auto set_windows = [&] {
    from.rows = from.needed_rows = block.rows + window_rows - 1;
    from.positions = from.row_positions = block.count + windows - 1;
  };
  for (set_windows(); from.elements() > line_elements; set_windows())
    (window_rows > 1 ? window_rows : windows) = ((window_rows > 1 ? window_rows : windows) + 1) / 2;
  bool is_loaded = false;
  const auto load = [&](std::int64_t row, std::int64_t first) HWY_ATTR {
    if (is_loaded && from.row == row && from.first == first) return;
    is_loaded = true;
    from.row = row;
    from.first = first;
    load_line<type>(d, a.y, from, T{0}, lines.read);
    if constexpr (is_maximum)
      load_line<DataType::s32>(d, reinterpret_cast<const std::byte*>(a.indices), from, std::bit_cast<T>(Integer<T>{-1}),
                               lines.indices);
    else
      divide(d, g, from, lines.read, lines.indices);
  };

  Part to = image_part(g, block);
  to.start -= a.before;
  to.row_begin = begin;
  to.row_end = end;
  to.row_step = stride_h;
  to.rows = block.rows;
  to.step = stride_w;
  to.positions = block.count;
  to.row_positions = from.positions;
  const std::int64_t width = to.channels, elements = ((block.rows - 1) * to.row_positions + block.count) * width,
                     at_once = std::clamp<std::int64_t>(line_elements / to.pitch(), 1, stride_w),
                     top = block.row * stride_h - g.rows.pad;
  // What windows up to `up` rows and `back` columns before the position's own give to a phase.
  const auto add = [&](std::int64_t row_phase, std::int64_t phase, std::int64_t up, std::int64_t back,
                       T* sums) HWY_ATTR {
    std::int64_t taps = 0;
    for (std::int64_t i = 0; i < window_rows; ++i)
      for (std::int64_t j = 0; j < windows; ++j) {
        const std::int64_t r = row_phase + (up + i) * stride_h, s = phase + (back + j) * stride_w;
        if (r >= g.rows.taps || s >= g.columns.taps) continue;
        lines.offsets[taps] = static_cast<std::int32_t>(from.at(0, 0, window_rows - 1 - i, windows - 1 - j));
        lines.tap_indices[taps++] = static_cast<std::int32_t>(r * g.columns.taps + s);
      }
    add_gradients<is_maximum>(d, elements, taps, up == above.first && back == left.first, lines, sums);
  };
  const std::int64_t last = std::min(stride_h, end - top);
  for (std::int64_t row_phase = std::max<std::int64_t>(0, begin - top - (block.rows - 1) * stride_h); row_phase < last;
       ++row_phase)
    for (std::int64_t phase = 0; phase < stride_w; phase += at_once) {
      to.row = top + row_phase;
      to.first = block.first * stride_w + phase - g.columns.pad;
      to.phases = std::min(at_once, stride_w - phase);
      if (above.count() <= 0 || left.count() <= 0) fill(d, lines.values, to.elements(), T{0});
      for (std::int64_t up = above.first; up < above.end; up += window_rows)
        for (std::int64_t back = left.first; back < left.end; back += windows) {
          load(block.row - up - window_rows + 1, block.first - back - windows + 1);
          for (std::int64_t k = 0; k < to.phases; ++k)
            add(row_phase, phase + k, up, back, lines.values + k * to.pitch());
        }
      store_line<type>(d, lines.values, to, lines.row, a.x);
    }
}

// Rows [row, row + rows) of a plane of dx.
template <DataType type, bool is_maximum, typename T = Real<type>>
HWY_NOINLINE void backward_rows(const PoolPlanes& g, const PoolArrays& a, std::int64_t plane, std::int64_t row,
                                std::int64_t rows, Lines<T>& lines) {
  const std::int64_t first = (row + g.rows.pad) / g.rows.stride, last = (row + rows - 1 + g.rows.pad) / g.rows.stride,
                     phases = g.columns.stride == 2 ? 2 : 1;  // of two, rows are put together from both
  Block block;
  block.plane = plane;
  block.row = first;
  for_blocks(g, block, last - first + 1, g.first_position, g.positions, phases,
             [&](const Block& part) HWY_ATTR { backward_block<type, is_maximum>(g, a, part, row, row + rows, lines); });
}

template <DataType type, bool is_maximum>
void make_lines_of(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  Lines<Real<type>> lines;
  const std::int64_t rows = g.backward ? g.rows.extent : g.rows.outputs;
  for (std::int64_t unit = first, count = 0; unit < end; unit += count) {
    const std::int64_t plane = unit / rows, row = unit % rows;
    count = std::min(rows - row, end - unit);
    g.backward ? backward_rows<type, is_maximum>(g, a, plane, row, count, lines)
               : forward_rows<type, is_maximum>(g, a, plane, row, count, lines);
  }
}

void make_lines(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  for_type_and_pooling(g, [&]<DataType type, bool is_maximum>() { make_lines_of<type, is_maximum>(g, a, first, end); });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(make_lines);

void make_pool_lines(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(make_lines)(planes, arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
