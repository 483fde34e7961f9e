// Elements side by side in a vector.
#include "operations/bias_add/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/bias_add/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type>
using Real = std::conditional_t<type == DataType::f64, double, float>;

// One of them for each type of element.
template <typename Body>
HWY_INLINE void with_type(DataType type, const Body& body) {
  switch (type) {
    case DataType::f64: return body(std::integral_constant<DataType, DataType::f64>());
    case DataType::f16: return body(std::integral_constant<DataType, DataType::f16>());
    case DataType::bf16: return body(std::integral_constant<DataType, DataType::bf16>());
    default: return body(std::integral_constant<DataType, DataType::f32>());
  }
}

// The first `count` elements of a vector to memory.
template <DataType type, class D>
HWY_INLINE void store_first(D d, hn::Vec<D> value, std::byte* to, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return store_stored<type>(d, value, to);
  alignas(64) std::byte stored[hn::MaxLanes(d) * 8];
  store_stored<type>(d, value, stored);
  std::memcpy(to, stored, static_cast<std::size_t>(count * size_of(type)));
}

void add_to_rows_any(DataType any_type, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t rows,
                     std::int64_t columns) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    // Few columns again and again, so that a vector of them begins with any.
    constexpr std::int64_t most_again = 512;
    if (columns <= most_again) {
      HWY_ALIGN Real<type> again[most_again + hn::MaxLanes(d)];
      for (std::int64_t i = 0; i < columns + lanes; ++i)
        again[i] = static_cast<Real<type>>(load_element(type, b + i % columns * size));
      const std::int64_t elements = rows * columns;
      for (std::int64_t e = 0, at = 0; e < elements; e += lanes, at = (at + lanes) % columns)
        store_first<type>(d, hn::Add(load_stored<type>(d, x + e * size, elements - e), hn::LoadU(d, again + at)),
                          y + e * size, elements - e);
      return;
    }
    for (std::int64_t row = 0; row < rows; ++row, x += columns * size, y += columns * size)
      for (std::int64_t c = 0; c < columns; c += lanes) {
        const std::int64_t left = columns - c;
        store_first<type>(d,
                          hn::Add(load_stored<type>(d, x + c * size, left), load_stored<type>(d, b + c * size, left)),
                          y + c * size, left);
      }
  });
}

void add_to_lines_any(DataType any_type, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t lines,
                      std::int64_t inner, std::int64_t channel, std::int64_t channels) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    for (std::int64_t line = 0; line < lines; ++line, x += inner * size, y += inner * size) {
      const auto own = hn::Set(d, static_cast<Real<type>>(load_element(type, b + channel * size)));
      for (std::int64_t k = 0; k < inner; k += lanes)
        store_first<type>(d, hn::Add(load_stored<type>(d, x + k * size, inner - k), own), y + k * size, inner - k);
      if (++channel == channels) channel = 0;
    }
  });
}

void sum_positions_any(DataType any_type, const std::byte* dy, const Positions& positions, std::byte* sum) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    auto all = hn::Zero(d), s0 = all, s1 = all, s2 = all, s3 = all;
    // Chains end after so many additions, so that errors of long sums stay small.
    std::int64_t chain = 0;
    const auto add_up = [&]() HWY_ATTR {
      all = hn::Add(all, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
      s0 = s1 = s2 = s3 = hn::Zero(d), chain = 0;
    };
    std::int64_t run = std::min(positions.first, positions.count), left = positions.count;
    const std::byte* from = dy;
    const std::byte* next = dy + (positions.first + positions.stride - positions.inner) * size;
    while (left > 0) {
      std::int64_t k = 0;
      for (; k + 4 * lanes <= run; k += 4 * lanes) {
        const auto load = [&](std::int64_t i) HWY_ATTR { return load_stored<type>(d, from + (k + i * lanes) * size); };
        s0 = hn::Add(s0, load(0)), s1 = hn::Add(s1, load(1)), s2 = hn::Add(s2, load(2)), s3 = hn::Add(s3, load(3));
        if (++chain >= most_chain) add_up();
      }
      for (; k < run; k += lanes, ++chain) s0 = hn::Add(s0, load_stored<type>(d, from + k * size, run - k));
      if (chain >= most_chain) add_up();
      left -= run, run = std::min(positions.inner, left);
      from = next, next += positions.stride * size;
    }
    add_up();
    const Real<type> of_lanes = hn::GetLane(hn::SumOfLanes(d, all));
    std::memcpy(sum, &of_lanes, sizeof of_lanes);
  });
}

void sum_columns_any(DataType any_type, const std::byte* dy, std::int64_t rows, std::int64_t columns,
                     std::int64_t stride, std::byte* sums) {
  with_type(any_type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    constexpr DataType sum_type = type == DataType::f64 ? DataType::f64 : DataType::f32;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    if (columns == stride && columns < 4 * lanes) {
      // Vectors begin with any column; after as many vectors as there are columns they begin with the same.
      HWY_ALIGN Real<type> chains[4 * hn::MaxLanes(d) * hn::MaxLanes(d)] = {};
      const std::int64_t elements = rows * columns, period = columns * lanes;
      for (std::int64_t e = 0, at = 0; e < elements; e += lanes, at = at + lanes == period ? 0 : at + lanes) {
        const auto sum = hn::Add(hn::Load(d, chains + at), load_stored<type>(d, dy + e * size, elements - e));
        hn::Store(sum, d, chains + at);
      }
      for (std::int64_t c = 0; c < columns; ++c) {
        Real<type> sum = chains[c];
        for (std::int64_t at = c + columns; at < period; at += columns) sum += chains[at];
        std::memcpy(sums + c * size_of(sum_type), &sum, sizeof sum);
      }
      return;
    }
    for (std::int64_t c = 0; c < columns; c += 4 * lanes) {
      auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
      const std::int64_t left = columns - c;
      const std::byte* from = dy + c * size;
      for (std::int64_t first = 0; first < rows; first += most_rows) {
        auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
        for (std::int64_t row = first; row < std::min(first + most_rows, rows); ++row, from += stride * size) {
          const auto load = [&](std::int64_t i) HWY_ATTR {
            return left >= (i + 1) * lanes ? load_stored<type>(d, from + i * lanes * size)
                   : left > i * lanes      ? load_stored<type>(d, from + i * lanes * size, left - i * lanes)
                                           : hn::Zero(d);
          };
          s0 = hn::Add(s0, load(0)), s1 = hn::Add(s1, load(1)), s2 = hn::Add(s2, load(2)), s3 = hn::Add(s3, load(3));
        }
        a0 = hn::Add(a0, s0), a1 = hn::Add(a1, s1), a2 = hn::Add(a2, s2), a3 = hn::Add(a3, s3);
      }
      const auto store = [&](auto value, std::int64_t i) HWY_ATTR {
        if (left > i * lanes)
          store_first<sum_type>(d, value, sums + (c + i * lanes) * size_of(sum_type), left - i * lanes);
      };
      store(a0, 0), store(a1, 1), store(a2, 2), store(a3, 3);
    }
  });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(add_to_rows_any);
HWY_EXPORT(add_to_lines_any);
HWY_EXPORT(sum_positions_any);
HWY_EXPORT(sum_columns_any);

void add_to_rows(DataType type, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t rows,
                 std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(add_to_rows_any)(type, x, b, y, rows, columns);
}
void add_to_lines(DataType type, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t lines,
                  std::int64_t inner, std::int64_t channel, std::int64_t channels) {
  HWY_DYNAMIC_DISPATCH(add_to_lines_any)(type, x, b, y, lines, inner, channel, channels);
}
void sum_positions(DataType type, const std::byte* dy, const Positions& positions, std::byte* sum) {
  HWY_DYNAMIC_DISPATCH(sum_positions_any)(type, dy, positions, sum);
}
void sum_columns(DataType type, const std::byte* dy, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                 std::byte* sums) {
  HWY_DYNAMIC_DISPATCH(sum_columns_any)(type, dy, rows, columns, stride, sums);
}

}  // namespace omniconv::kernels
#endif
