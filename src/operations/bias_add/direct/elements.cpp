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

void add_any(const BiasAddProblem& problem, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t planes,
             std::int64_t inner) {
  with_type(problem.type, [&](auto of) HWY_ATTR {
    constexpr DataType type = decltype(of)::value;
    const hn::ScalableTag<Real<type>> d;
    const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type);
    for (std::int64_t plane = 0; plane < planes; ++plane) {
      const std::byte* const from = x + plane * problem.c * inner * size;
      std::byte* const to = y + plane * problem.c * inner * size;
      if (inner == 1) {
        for (std::int64_t c = 0; c < problem.c; c += lanes) {
          const std::int64_t left = problem.c - c;
          store_first<type>(
              d, hn::Add(load_stored<type>(d, from + c * size, left), load_stored<type>(d, b + c * size, left)),
              to + c * size, left);
        }
        continue;
      }
      for (std::int64_t c = 0; c < problem.c; ++c) {
        const auto own = hn::Set(d, static_cast<Real<type>>(load_element(type, b + c * size)));
        for (std::int64_t k = 0; k < inner; k += lanes) {
          const std::int64_t at = (c * inner + k) * size, left = inner - k;
          store_first<type>(d, hn::Add(load_stored<type>(d, from + at, left), own), to + at, left);
        }
      }
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
    std::int64_t c = 0;
    for (; c + 4 * lanes <= columns; c += 4 * lanes) {
      auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
      const std::byte* from = dy + c * size;
      for (std::int64_t row = 0; row < rows; ++row, from += stride * size) {
        const auto load = [&](std::int64_t i) HWY_ATTR { return load_stored<type>(d, from + i * lanes * size); };
        s0 = hn::Add(s0, load(0)), s1 = hn::Add(s1, load(1)), s2 = hn::Add(s2, load(2)), s3 = hn::Add(s3, load(3));
      }
      const auto store = [&](auto value, std::int64_t i)
                             HWY_ATTR { store_stored<sum_type>(d, value, sums + (c + i * lanes) * size_of(sum_type)); };
      store(s0, 0), store(s1, 1), store(s2, 2), store(s3, 3);
    }
    for (; c < columns; c += lanes) {
      auto sum = hn::Zero(d);
      const std::byte* from = dy + c * size;
      for (std::int64_t row = 0; row < rows; ++row, from += stride * size)
        sum = hn::Add(sum, load_stored<type>(d, from, columns - c));
      store_first<sum_type>(d, sum, sums + c * size_of(sum_type), columns - c);
    }
  });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(add_any);
HWY_EXPORT(sum_positions_any);
HWY_EXPORT(sum_columns_any);

void add_bias(const BiasAddProblem& problem, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t planes,
              std::int64_t inner) {
  HWY_DYNAMIC_DISPATCH(add_any)(problem, x, b, y, planes, inner);
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
