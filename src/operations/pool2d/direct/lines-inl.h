// Lines: columns of a row as vectors can take them, widened, with what stands for padding in its place, and those that
// are a stride apart side by side. For inclusion by each target of a file of vector code, after Highway.
#if defined(OMNICONV_POOL_LINES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_POOL_LINES_INL_H
#undef OMNICONV_POOL_LINES_INL_H
#else
#define OMNICONV_POOL_LINES_INL_H
#endif

#include <algorithm>
#include <bit>
#include <cstring>

#include "operations/pool2d/direct/planes.h"
#include "operations/pool2d/direct/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Some columns of some rows of an array of planes, as a line: column first + position * step + phase of row
// row + i * row_step + row_phase is line[at(row_phase, phase, i, position) + channel].
struct Part {
  std::int64_t start = 0;                                   // elements of the array before its first plane
  std::int64_t columns = 0, depth = 0, plane_elements = 0;  // of the planes
  std::int64_t row_begin = 0, row_end = 0;                  // those that are there, or to be written
  std::int64_t channel = 0, channels = 0;                   // of a pixel, those that the line has
  std::int64_t row = 0, row_step = 1, row_phases = 1, rows = 1, needed_rows = 1;   // of the array, from `row` on
  std::int64_t first = 0, step = 1, phases = 1, positions = 1, row_positions = 1;  // at most, of a row of the line

  // A phase of its own begins where no vector of the one before ends.
  static std::int64_t pitch_of(std::int64_t elements) { return (elements + 31) / 16 * 16; }
  std::int64_t pitch() const { return pitch_of(rows * row_positions * channels); }
  std::int64_t elements() const { return row_phases * phases * pitch(); }
  std::int64_t at(std::int64_t row_phase, std::int64_t phase, std::int64_t i, std::int64_t position) const {
    return (row_phase * phases + phase) * pitch() + (i * row_positions + position) * channels;
  }
  std::int64_t in_array(std::int64_t h, std::int64_t column) const {
    return start + (h * columns + column) * depth + channel;
  }
};

// Lines are read and written in whole vectors, beyond their ends.
constexpr std::int64_t line_elements = 4096, spare_elements = 32;

template <typename T>
struct Lines {
  HWY_ALIGN T values[line_elements + spare_elements];   // maxima or sums
  HWY_ALIGN T read[line_elements + spare_elements];     // x or dy
  HWY_ALIGN T indices[line_elements + spare_elements];  // integers of as many bits
  HWY_ALIGN T row[2 * line_elements + spare_elements];  // columns in their order, for load_line and store_line alone
  std::int32_t offsets[line_elements];                  // where in a line the taps of the first window are
  std::int32_t tap_indices[line_elements];              // and their numbers
};

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void fill(D d, T* to, std::int64_t count, T value) {
  for (std::int64_t i = 0; i < count; i += lanes_of(d)) hn::StoreU(hn::Set(d, value), d, to + i);
}
// Elements that follow each other. The last vector of many begins earlier, so as not to reach beyond the array.
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void widen(D d, const std::byte* from, std::int64_t count, T* to) {
  const std::int64_t lanes = lanes_of(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hwy::Prefetch(from + i * bytes_of<type> + ahead_bytes);
    hn::StoreU(load_vector<type>(d, from + i * bytes_of<type>), d, to + i);
  }
  if (i == count) return;
  if (count >= lanes) {
    i = count - lanes;
    return hn::StoreU(load_vector<type>(d, from + i * bytes_of<type>), d, to + i);
  }
  for (; i < count; ++i) to[i] = load_one<type, T>(from + i * bytes_of<type>);
}
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void narrow(D d, const T* from, std::int64_t count, std::byte* to) {
  const std::int64_t lanes = lanes_of(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store_vector<type>(d, hn::LoadU(d, from + i), to + i * bytes_of<type>);
  if (i == count) return;
  if (count >= lanes) {
    i = count - lanes;
    return store_vector<type>(d, hn::LoadU(d, from + i), to + i * bytes_of<type>);
  }
  for (; i < count; ++i) store_one<type>(from[i], to + i * bytes_of<type>);
}

// `count` columns from the part's first on, of the row that begins at `row`, all of their channels.
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void widen_columns(D d, const std::byte* row, const Part& part, std::int64_t count, T outside, T* to) {
  const std::int64_t left = std::clamp<std::int64_t>(-part.first, 0, count),
                     right = std::clamp<std::int64_t>(part.columns - part.first, left, count);
  if (left > 0) fill(d, to, left * part.depth, outside);
  widen<type>(d, row + (part.first + left) * part.depth * bytes_of<type>, (right - left) * part.depth,
              to + left * part.depth);
  if (right < count) fill(d, to + right * part.depth, (count - right) * part.depth, outside);
}
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void narrow_columns(D d, const T* from, const Part& part, std::int64_t count, std::byte* row) {
  const std::int64_t left = std::clamp<std::int64_t>(-part.first, 0, count),
                     right = std::clamp<std::int64_t>(part.columns - part.first, left, count);
  narrow<type>(d, from + left * part.depth, (right - left) * part.depth,
               row + (part.first + left) * part.depth * bytes_of<type>);
}

// Every other column to the first phase, those between to the second. Both of a pair are in the row, but for edges.
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void load_pairs(D d, const std::byte* row, const Part& part, T outside, T* line) {
  const std::int64_t lanes = lanes_of(d), pitch = part.pitch(), positions = part.positions;
  std::int64_t begin = std::clamp<std::int64_t>((1 - part.first) / 2, 0, positions),
               end = std::clamp<std::int64_t>((part.columns - part.first) / 2, begin, positions);
  if (HWY_TARGET == HWY_SCALAR || end - begin < lanes) begin = end = positions;
#if HWY_TARGET != HWY_SCALAR
  const auto load = [&](std::int64_t j) HWY_ATTR {
    const std::byte* const from = row + (part.first + 2 * j) * bytes_of<type>;
    const auto low = load_vector<type>(d, from), high = load_vector<type>(d, from + lanes * bytes_of<type>);
    hn::StoreU(hn::ConcatEven(d, high, low), d, line + j);
    hn::StoreU(hn::ConcatOdd(d, high, low), d, line + pitch + j);
  };
  std::int64_t j = begin;
  for (; j + lanes <= end; j += lanes) load(j);
  if (j < end) load(end - lanes);
#endif
  const auto load_edge = [&](std::int64_t edge) {
    for (std::int64_t phase = 0; phase < 2; ++phase) {
      const std::int64_t column = part.first + 2 * edge + phase;
      line[phase * pitch + edge] =
          column >= 0 && column < part.columns ? load_one<type, T>(row + column * bytes_of<type>) : outside;
    }
  };
  for (std::int64_t edge = 0; edge < begin; ++edge) load_edge(edge);
  for (std::int64_t edge = end; edge < positions; ++edge) load_edge(edge);
}
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_pairs(D d, const T* line, const Part& part, T* together, std::byte* row) {
  const std::int64_t lanes = lanes_of(d), pitch = part.pitch(), positions = part.positions;
  for (std::int64_t j = 0; j < positions; j += lanes)
    hn::StoreInterleaved2(hn::LoadU(d, line + j), hn::LoadU(d, line + pitch + j), d, together + 2 * j);
  narrow_columns<type>(d, together, part, 2 * positions, row);
}

template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void load_row(D d, const std::byte* array, const Part& part, std::int64_t row_phase, std::int64_t i,
                         T outside, T* line) {
  const std::int64_t h = part.row + i * part.row_step + row_phase, positions = part.positions;
  const bool pairs = part.step == 2 && part.phases == 2 && part.depth == 1,
             is_there = h >= part.row_begin && h < part.row_end;
  T* const to = line + part.at(row_phase, 0, i, 0);
  if (!is_there) {
    for (std::int64_t phase = 0; phase < part.phases; ++phase)
      fill(d, to + phase * part.pitch(), positions * part.channels, outside);
  } else if (pairs) {
    load_pairs<type>(d, array + part.in_array(h, 0) * bytes_of<type>, part, outside, to);
  } else if (part.step == 1 && part.channels == part.depth) {
    widen_columns<type>(d, array + part.in_array(h, 0) * bytes_of<type>, part, positions, outside, to);
  } else {
    const std::int64_t channels = part.channels, step = part.step, columns = part.columns, phases = part.phases,
                       pitch = part.pitch(), pixel = part.depth * bytes_of<type>, first = part.first;
    const std::byte* const from = array + part.in_array(h, 0) * bytes_of<type>;
    for (std::int64_t phase = 0; phase < phases; ++phase)
      for (std::int64_t j = 0, column = first + phase; j < positions; ++j, column += step)
        if (column >= 0 && column < columns)
          widen<type>(d, from + column * pixel, channels, to + phase * pitch + j * channels);
        else
          fill(d, to + phase * pitch + j * channels, channels, outside);
  }
}

template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void load_line(D d, const std::byte* array, const Part& part, T outside, T* line) {
  for (std::int64_t row_phase = 0; row_phase < part.row_phases; ++row_phase)
    for (std::int64_t i = 0; i < part.rows && i * part.row_step + row_phase < part.needed_rows; ++i)
      load_row<type>(d, array, part, row_phase, i, outside, line);
}

template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_row(D d, const Part& part, std::int64_t i, T* row, T* line, std::byte* array) {
  const std::int64_t h = part.row + i * part.row_step, positions = part.positions;
  if (h < part.row_begin || h >= part.row_end) return;
  T* const from = line + part.at(0, 0, i, 0);
  std::byte* const to = array + part.in_array(h, 0) * bytes_of<type>;
  if (part.step == 2 && part.phases == 2 && part.depth == 1) {
    store_pairs<type>(d, from, part, row, to);
  } else if (part.step == 1 && part.channels == part.depth) {
    narrow_columns<type>(d, from, part, positions, to);
  } else {
    const std::int64_t channels = part.channels, step = part.step, columns = part.columns, phases = part.phases,
                       pitch = part.pitch(), pixel = part.depth * bytes_of<type>, first = part.first;
    for (std::int64_t phase = 0; phase < phases; ++phase)
      for (std::int64_t j = 0, column = first + phase; j < positions && column < columns; ++j, column += step)
        if (column >= 0) narrow<type>(d, from + phase * pitch + j * channels, channels, to + column * pixel);
  }
}

// Of one phase of rows.
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_NOINLINE void store_line(D d, T* line, const Part& part, T* row, std::byte* array) {
  for (std::int64_t i = 0; i < part.rows; ++i) store_row<type>(d, part, i, row, line, array);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
