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

// Some columns of some rows of an array of planes, as a line: column first + position * step + phase of row
// row + i * row_step is line[phase * pitch() + (i * row_positions + position) * width() + channel].
struct Part {
  std::int64_t start = 0;                           // elements of the array before its first plane
  std::int64_t height = 0, columns = 0, depth = 0;  // of the planes
  std::int64_t channel = 0, channels = 0;           // of a pixel, those that the line has
  std::int64_t row = 0, row_step = 1, rows = 1;
  std::int64_t first = 0, step = 1, phases = 1, positions = 1, row_positions = 1;
  // Or one row and one position of each of several planes, in place of channels.
  bool turned = false;
  std::int64_t planes = 1;

  static constexpr std::int64_t most_planes = 16;
  std::int64_t width() const { return turned ? most_planes : channels; }
  std::int64_t pitch() const { return aligned(rows * row_positions * width()); }
  std::int64_t plane_elements() const { return height * columns * depth; }
  std::int64_t row_of(std::int64_t i) const { return row + i * row_step; }
  bool has_row(std::int64_t i) const { return row_of(i) >= 0 && row_of(i) < height; }
  std::int64_t at(std::int64_t i, std::int64_t column) const {
    return start + (row_of(i) * columns + column) * depth + channel;
  }
  // Elements of the line between which vectors may begin.
  static std::int64_t aligned(std::int64_t elements) { return (elements + 15) / 16 * 16; }
};

// Lines are read and written in whole vectors, beyond their ends.
constexpr std::int64_t line_elements = 4096, spare_elements = 32;

template <typename T>
struct Lines {
  HWY_ALIGN T values[line_elements + spare_elements];   // maxima or sums
  HWY_ALIGN T read[line_elements + spare_elements];     // x or dy
  HWY_ALIGN T indices[line_elements + spare_elements];  // integers of as many bits
  HWY_ALIGN T row[2 * line_elements + spare_elements];  // columns in their order, for load_line and store_line alone
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

// Rows of a square of 16 bytes a side as its columns.
template <typename T>
constexpr std::int64_t square = HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T);
template <typename T>
HWY_INLINE void turn_square(const T* from, [[maybe_unused]] std::int64_t from_pitch, T* to,
                            [[maybe_unused]] std::int64_t to_pitch) {
#if HWY_TARGET == HWY_SCALAR
  *to = *from;
#else
  const hn::FixedTag<T, square<T>> d;
  const auto row = [&](std::int64_t i) HWY_ATTR { return hn::LoadU(d, from + i * from_pitch); };
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(hn::InterleaveLower(d, row(0), row(1)), d, to);
    hn::StoreU(hn::InterleaveUpper(d, row(0), row(1)), d, to + to_pitch);
  } else {
    const hn::RepartitionToWide<decltype(d)> pairs;
    const auto lower0 = hn::BitCast(pairs, hn::InterleaveLower(d, row(0), row(1))),
               lower2 = hn::BitCast(pairs, hn::InterleaveLower(d, row(2), row(3))),
               upper0 = hn::BitCast(pairs, hn::InterleaveUpper(d, row(0), row(1))),
               upper2 = hn::BitCast(pairs, hn::InterleaveUpper(d, row(2), row(3)));
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, lower0, lower2)), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, lower0, lower2)), d, to + to_pitch);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, upper0, upper2)), d, to + 2 * to_pitch);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, upper0, upper2)), d, to + 3 * to_pitch);
  }
#endif
}
// Between a line of planes and rows of theirs, `row_pitch` elements apart.
template <bool to_line, typename T>
HWY_INLINE void turn(T* line, T* rows, std::int64_t columns, std::int64_t row_pitch) {
  constexpr std::int64_t side = square<T>, width = Part::most_planes;
  for (std::int64_t column = 0; column < columns; column += side)
    for (std::int64_t plane = 0; plane < width; plane += side) {
      T *const in_line = line + column * width + plane, *const in_rows = rows + plane * row_pitch + column;
      if constexpr (to_line)
        turn_square(in_rows, row_pitch, in_line, width);
      else
        turn_square(in_line, width, in_rows, row_pitch);
    }
}

template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void load_line(D d, const std::byte* array, const Part& part, T outside, T* row, T* line) {
  if (part.turned) {
    const std::int64_t row_pitch = (part.phases + 3) / 4 * 4;
    for (std::int64_t plane = 0; plane < Part::most_planes; ++plane) {
      const std::int64_t before = std::min(plane, part.planes - 1) * part.plane_elements();
      widen_columns<type>(d, array + (part.at(0, 0) + before) * bytes_of<type>, part, part.phases, outside,
                          row + plane * row_pitch);
    }
    return turn<true>(line, row, part.phases, row_pitch);
  }
  const bool pairs = part.step == 2 && part.depth == 1, whole = part.step == 1 && part.channels == part.depth;
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const std::int64_t before = i * part.row_positions;
    if (pairs || whole) {
      const std::int64_t count = pairs ? 2 * part.row_positions : part.positions;
      T* const to = pairs ? row + 2 * before : line + before * part.depth;
      if (part.has_row(i))
        widen_columns<type>(d, array + part.at(i, 0) * bytes_of<type>, part, count, outside, to);
      else
        fill(d, to, count * part.depth, outside);
      continue;
    }
    for (std::int64_t phase = 0; phase < part.phases; ++phase)
      for (std::int64_t position = 0; position < part.positions; ++position) {
        const std::int64_t column = part.first + position * part.step + phase;
        T* const to = line + phase * part.pitch() + (before + position) * part.channels;
        if (part.has_row(i) && column >= 0 && column < part.columns)
          widen<type>(d, array + part.at(i, column) * bytes_of<type>, part.channels, to);
        else
          std::fill_n(to, part.channels, outside);
      }
  }
  if (!pairs) return;
  for (std::int64_t i = 0; i < part.rows * part.row_positions; i += lanes_of(d)) {
    hn::Vec<D> even, odd;
    hn::LoadInterleaved2(d, row + 2 * i, even, odd);
    hn::StoreU(even, d, line + i);
    if (part.phases == 2) hn::StoreU(odd, d, line + part.pitch() + i);
  }
}

// Its rows are all there.
template <DataType type, class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_line(D d, T* line, const Part& part, T* row, std::byte* array) {
  if (part.turned) {
    const std::int64_t row_pitch = (part.phases + 3) / 4 * 4;
    turn<false>(line, row, part.phases, row_pitch);
    for (std::int64_t plane = 0; plane < part.planes; ++plane)
      narrow_columns<type>(d, row + plane * row_pitch, part, part.phases,
                           array + (part.at(0, 0) + plane * part.plane_elements()) * bytes_of<type>);
    return;
  }
  const bool pairs = part.step == 2 && part.phases == 2 && part.depth == 1,
             whole = part.step == 1 && part.channels == part.depth;
  if (pairs)
    for (std::int64_t i = 0; i < part.rows * part.row_positions; i += lanes_of(d))
      hn::StoreInterleaved2(hn::LoadU(d, line + i), hn::LoadU(d, line + part.pitch() + i), d, row + 2 * i);
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const std::int64_t before = i * part.row_positions;
    if (pairs || whole) {
      narrow_columns<type>(d, pairs ? row + 2 * before : line + before * part.depth, part,
                           pairs ? 2 * part.positions : part.positions, array + part.at(i, 0) * bytes_of<type>);
      continue;
    }
    for (std::int64_t phase = 0; phase < part.phases; ++phase)
      for (std::int64_t position = 0; position < part.positions; ++position) {
        const std::int64_t column = part.first + position * part.step + phase;
        if (column >= 0 && column < part.columns)
          narrow<type>(d, line + phase * part.pitch() + (before + position) * part.channels, part.channels,
                       array + part.at(i, column) * bytes_of<type>);
      }
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
