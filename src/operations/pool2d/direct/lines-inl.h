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
#include <type_traits>

#include "core/checked.h"
#include "operations/pool2d/direct/planes.h"
#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE std::int64_t lanes_of(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}
template <DataType type>
constexpr std::int64_t bytes_of = type == DataType::f64                             ? 8
                                  : type == DataType::f16 || type == DataType::bf16 ? 2
                                                                                    : 4;

// Some columns of a row: column first + position * step + phase is line[phase * pitch() + position * width + i].
struct Part {
  std::int64_t start;              // elements of the array before the row
  std::int64_t columns, depth;     // of the row
  std::int64_t channel, channels;  // of a pixel, those that the line has
  std::int64_t width;              // i: channels, or planes where several lie side by side
  std::int64_t planes = 1, plane_elements = 0;
  std::int64_t first = 0, step = 1, phases = 1, positions = 1;

  bool is_turned() const { return width > channels; }
  std::int64_t pitch() const { return round_up(positions * width, most_lanes); }
  bool has(std::int64_t column) const { return column >= 0 && column < columns; }
  std::int64_t at(std::int64_t column) const { return start + column * depth + channel; }

  static constexpr std::int64_t most_lanes = 16;
};

// Lines are read and written in whole vectors, beyond their ends.
constexpr std::int64_t line_elements = 4096, spare_elements = 2 * Part::most_lanes;

template <typename T>
struct Lines {
  HWY_ALIGN T values[line_elements + spare_elements];   // maxima or sums
  HWY_ALIGN T read[line_elements + spare_elements];     // x or dy
  HWY_ALIGN T indices[line_elements + spare_elements];  // integers of as many bits
  HWY_ALIGN T row[2 * line_elements];                   // columns in their order, for load_line and store_line alone
};

// Indices are s32 in memory, and as wide as the elements in lines.
template <typename T>
using Integer = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
template <class D>
using IndexTag = hn::RebindToSigned<D>;
template <class D>
using IndexVec = hn::Vec<IndexTag<D>>;
template <class D>
HWY_INLINE IndexVec<D> every_index(D, std::int64_t index) {
  const IndexTag<D> d;
  return hn::Set(d, static_cast<hn::TFromD<IndexTag<D>>>(index));
}

template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_vector(D d, const std::byte* from) {
  if constexpr (type != DataType::s32) {
    return load_stored<type>(d, from);
  } else {
    const hn::Rebind<std::int32_t, D> stored;
    const auto indices = hn::LoadU(stored, reinterpret_cast<const std::int32_t*>(from));
    if constexpr (sizeof(hn::TFromD<D>) == 4)
      return hn::BitCast(d, indices);
    else
      return hn::BitCast(d, hn::PromoteTo(IndexTag<D>(), indices));
  }
}
template <DataType type, class D>
HWY_INLINE void store_vector(D d, hn::Vec<D> value, std::byte* to) {
  if constexpr (type != DataType::s32) {
    store_stored<type>(d, value, to);
  } else {
    const hn::Rebind<std::uint32_t, D> stored;
    const auto indices = hn::BitCast(hn::RebindToUnsigned<D>(), value);
    if constexpr (sizeof(hn::TFromD<D>) == 4)
      hn::StoreU(indices, stored, reinterpret_cast<std::uint32_t*>(to));
    else
      hn::StoreU(hn::TruncateTo(stored, indices), stored, reinterpret_cast<std::uint32_t*>(to));
  }
}

// One element: bits are kept where none are to be changed.
template <DataType type, typename T>
HWY_INLINE T load_one(const std::byte* from) {
  T value;
  if constexpr (type == DataType::s32) {
    std::int32_t index;
    std::memcpy(&index, from, sizeof index);
    value = std::bit_cast<T>(static_cast<Integer<T>>(index));
  } else if constexpr (bytes_of<type> == sizeof(T)) {
    std::memcpy(&value, from, sizeof value);
  } else {
    value = static_cast<T>(load_element(type, from));
  }
  return value;
}
template <DataType type, typename T>
HWY_INLINE void store_one(T value, std::byte* to) {
  if constexpr (type == DataType::s32) {
    const auto index = static_cast<std::int32_t>(std::bit_cast<Integer<T>>(value));
    std::memcpy(to, &index, sizeof index);
  } else if constexpr (bytes_of<type> == sizeof(T)) {
    std::memcpy(to, &value, sizeof value);
  } else {
    store_element(type, value, to);
  }
}

template <class D, typename T = hn::TFromD<D>>
HWY_INLINE void fill(D d, T* to, std::int64_t count, T value) {
  for (std::int64_t i = 0; i < count; i += lanes_of(d)) hn::StoreU(hn::Set(d, value), d, to + i);
}
// Elements that follow each other. The last vector of many begins earlier, so as not to reach beyond the array.
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void widen(D d, const std::byte* from, std::int64_t count, T* to) {
  const std::int64_t lanes = lanes_of(d);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(load_vector<type>(d, from + i * bytes_of<type>), d, to + i);
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

// Columns from the part's first on, of row `row`, all of their channels.
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

// Rows of a square of 16 bytes a side as its columns.
template <typename T>
constexpr std::int64_t square = HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T);
template <typename T>
HWY_INLINE void turn_square(const T* const (&from)[square<T>], T* const (&to)[square<T>]) {
#if HWY_TARGET == HWY_SCALAR
  *to[0] = *from[0];
#else
  const hn::FixedTag<T, square<T>> d;
  const auto row = [&](int i) HWY_ATTR { return hn::LoadU(d, from[i]); };
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(hn::InterleaveLower(d, row(0), row(1)), d, to[0]);
    hn::StoreU(hn::InterleaveUpper(d, row(0), row(1)), d, to[1]);
  } else {
    const hn::RepartitionToWide<decltype(d)> pairs;
    const auto lower0 = hn::BitCast(pairs, hn::InterleaveLower(d, row(0), row(1))),
               lower2 = hn::BitCast(pairs, hn::InterleaveLower(d, row(2), row(3))),
               upper0 = hn::BitCast(pairs, hn::InterleaveUpper(d, row(0), row(1))),
               upper2 = hn::BitCast(pairs, hn::InterleaveUpper(d, row(2), row(3)));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, lower0, lower2)), d, to[0]);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, lower0, lower2)), d, to[1]);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, upper0, upper2)), d, to[2]);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, upper0, upper2)), d, to[3]);
  }
#endif
}
// Between a line of planes that lie side by side and rows of theirs, `row_pitch` elements apart.
template <bool to_line, typename T>
HWY_INLINE void turn(const Part& part, T* line, T* rows, std::int64_t columns, std::int64_t row_pitch) {
  constexpr std::int64_t side = square<T>;
  T none[Part::most_lanes] = {};
  std::int64_t position = 0, phase = 0;
  for (std::int64_t column = 0; column < columns; column += side) {
    T* places[side];
    for (T*& place : places) {
      const bool is_there = phase < part.phases && position < part.positions;
      place = is_there ? line + phase * part.pitch() + position * part.width : nullptr;
      if (++phase == part.step) phase = 0, ++position;
    }
    for (std::int64_t plane = 0; plane < part.width; plane += side) {
      T *in_line[side], *in_rows[side];
      for (std::int64_t i = 0; i < side; ++i) {
        in_line[i] = places[i] == nullptr ? none : places[i] + plane;
        in_rows[i] = rows + (plane + i) * row_pitch + column;
      }
      if constexpr (to_line)
        turn_square<T>(in_rows, in_line);
      else
        turn_square<T>(in_line, in_rows);
    }
  }
}

template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void load_line(D d, const std::byte* array, const Part& part, T outside, T* row, T* line) {
  const std::int64_t columns = (part.positions - 1) * part.step + part.phases,
                     row_pitch = round_up(columns, Part::most_lanes / 4);
  const std::byte* const from = array + part.start * bytes_of<type>;
  if (part.is_turned()) {
    for (std::int64_t plane = 0; plane < part.width; ++plane)
      widen_columns<type>(d, from + std::min(plane, part.planes - 1) * part.plane_elements * bytes_of<type>, part,
                          columns, outside, row + plane * row_pitch);
    turn<true>(part, line, row, columns, row_pitch);
  } else if (part.step == 1 && part.channels == part.depth) {
    widen_columns<type>(d, from, part, columns, outside, line);
  } else if (part.step == 2 && part.depth == 1) {
    widen_columns<type>(d, from, part, columns, outside, row);
    for (std::int64_t i = 0; i < part.positions; i += lanes_of(d)) {
      hn::Vec<D> even, odd;
      hn::LoadInterleaved2(d, row + 2 * i, even, odd);
      hn::StoreU(even, d, line + i);
      if (part.phases == 2) hn::StoreU(odd, d, line + part.pitch() + i);
    }
  } else {
    for (std::int64_t phase = 0; phase < part.phases; ++phase)
      for (std::int64_t position = 0; position < part.positions; ++position) {
        const std::int64_t column = part.first + position * part.step + phase;
        T* const to = line + phase * part.pitch() + position * part.width;
        if (!part.has(column))
          fill(d, to, part.channels, outside);
        else
          widen<type>(d, array + part.at(column) * bytes_of<type>, part.channels, to);
      }
  }
}

template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_line(D d, T* line, const Part& part, T* row, std::byte* array) {
  const std::int64_t columns = (part.positions - 1) * part.step + part.phases,
                     row_pitch = round_up(columns, Part::most_lanes / 4);
  std::byte* const to = array + part.start * bytes_of<type>;
  if (part.is_turned()) {
    turn<false>(part, line, row, columns, row_pitch);
    for (std::int64_t plane = 0; plane < part.planes; ++plane)
      narrow_columns<type>(d, row + plane * row_pitch, part, columns,
                           to + plane * part.plane_elements * bytes_of<type>);
  } else if (part.step == 1 && part.channels == part.depth) {
    narrow_columns<type>(d, line, part, columns, to);
  } else if (part.step == 2 && part.phases == 2 && part.depth == 1) {
    for (std::int64_t i = 0; i < part.positions; i += lanes_of(d))
      hn::StoreInterleaved2(hn::LoadU(d, line + i), hn::LoadU(d, line + part.pitch() + i), d, row + 2 * i);
    narrow_columns<type>(d, row, part, columns, to);
  } else {
    for (std::int64_t phase = 0; phase < part.phases; ++phase)
      for (std::int64_t position = 0; position < part.positions; ++position) {
        const std::int64_t column = part.first + position * part.step + phase;
        if (part.has(column))
          narrow<type>(d, line + phase * part.pitch() + position * part.width, part.channels,
                       array + part.at(column) * bytes_of<type>);
      }
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
