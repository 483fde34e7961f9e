// nchw, planes that are one window: a vector is neighbouring elements of one.
#include "operations/pool2d/direct/planes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/whole.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "operations/pool2d/direct/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Calls body(vector, its first element) for all of a plane's elements, which fill so many vectors if `vectors` > 0 says
// so, the last ones first. The vector of the last begins earlier than where the one before it ends, if it can; what it
// has of others, or of no element, is `outside`.
template <DataType type, int vectors, class D, typename T = hn::TFromD<D>, typename Body>
HWY_INLINE void for_vectors(D d, const std::byte* x, std::int64_t elements, T outside, const Body& body) {
  const std::int64_t lanes = lanes_of(d);
  if constexpr (vectors > 0) {
    const auto last = load_vector<type>(d, x + (elements - lanes) * bytes_of<type>);
    const auto others = hn::FirstN(d, static_cast<std::size_t>(vectors * lanes - elements));
    body(hn::IfThenElse(others, hn::Set(d, outside), last), elements - lanes);
    for (int i = vectors - 2; i >= 0; --i) body(load_vector<type>(d, x + i * lanes * bytes_of<type>), i * lanes);
    return;
  }
  const std::int64_t rest = elements % lanes;
  if (rest > 0 && elements > lanes) {
    const auto last = load_vector<type>(d, x + (elements - lanes) * bytes_of<type>);
    body(hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(lanes - rest)), hn::Set(d, outside), last),
         elements - lanes);
  } else if (rest > 0) {
    const auto some = load_stored<type>(d, x, elements);
    body(hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(rest)), some, hn::Set(d, outside)), 0);
  }
  for (std::int64_t e = elements - rest - lanes; e >= 0; e -= lanes)
    body(load_vector<type>(d, x + e * bytes_of<type>), e);
}

// In every lane.
template <class D>
HWY_INLINE hn::Vec<D> greatest_of_lanes(D d, hn::Vec<D> value) {
#if HWY_TARGET == HWY_EMU128  // whose MaxOfLanes() of infinities below zero is the least finite number, in Highway 1.0
  auto greatest = hn::GetLane(value);
  for (std::size_t i = 1; i < hn::Lanes(d); ++i) greatest = std::max(greatest, hn::ExtractLane(value, i));
  return hn::Set(d, greatest);
#else
  return hn::MaxOfLanes(d, value);
#endif
}

// The index of the first NaN, or else of the first of those that equal the greatest.
template <DataType type, int vectors, class D, typename T = hn::TFromD<D>>
HWY_INLINE std::int64_t first_maximum(D d, const std::byte* x, std::int64_t elements) {
  const T outside = -std::numeric_limits<T>::infinity();
  auto greatest = hn::Set(d, outside);
  auto is_nan = hn::IsNaN(greatest);
  for_vectors<type, vectors>(d, x, elements, outside, [&](hn::Vec<D> value, std::int64_t) HWY_ATTR {
    greatest = hn::Max(greatest, value);
    is_nan = hn::Or(is_nan, hn::IsNaN(value));
  });
  const bool has_nan = !hn::AllFalse(d, is_nan);
  greatest = greatest_of_lanes(d, greatest);
  // The least index of all lanes, without asking which: that would be guessed wrong for most planes.
  const IndexTag<D> integers;
  const auto counting = hn::Iota(integers, 0);
  auto winner = hn::Set(integers, std::numeric_limits<Integer<T>>::max());
  for_vectors<type, vectors>(d, x, elements, outside, [&](hn::Vec<D> value, std::int64_t first) HWY_ATTR {
    const auto wins = hn::RebindMask(integers, has_nan ? hn::IsNaN(value) : hn::Eq(value, greatest));
    const auto index = hn::Add(counting, every_index(d, first));
    winner = hn::Min(winner, hn::IfThenElse(wins, index, winner));
  });
  return hn::GetLane(hn::MinOfLanes(integers, winner));
}

template <DataType type, bool is_maximum, int vectors>
HWY_INLINE void whole_forward(const PoolArrays& a, std::int64_t plane, std::int64_t elements) {
  using T = Real<type>;
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::byte* const x = a.x + plane * elements * bytes_of<type>;
  std::byte* const y = a.y + (plane - a.before) * bytes_of<type>;
  for (std::int64_t i = 0; i < std::min(elements * bytes_of<type>, ahead_bytes); i += 64)
    hwy::Prefetch(x + i + ahead_bytes);
  if constexpr (is_maximum) {
    // Of pieces that stay in the first cache.
    constexpr std::int64_t piece = 2048;
    std::int64_t index = first_maximum<type, vectors>(d, x, std::min(piece, elements));
    for (std::int64_t e = piece; vectors == 0 && e < elements; e += piece) {
      const std::int64_t other = e + first_maximum<type, 0>(d, x + e * bytes_of<type>, std::min(piece, elements - e));
      const T best = load_one<type, T>(x + index * bytes_of<type>),
              value = load_one<type, T>(x + other * bytes_of<type>);
      if (!(value <= best) && best == best) index = other;
    }
    a.indices[plane - a.before] = static_cast<std::int32_t>(index);
    std::memcpy(y, x + index * bytes_of<type>, bytes_of<type>);
  } else {
    V sum = hn::Zero(d);
    for_vectors<type, vectors>(d, x, elements, T{0},
                               [&](V value, std::int64_t) HWY_ATTR { sum = hn::Add(sum, value); });
    store_one<type>(static_cast<T>(hn::GetLane(hn::SumOfLanes(d, sum)) / static_cast<T>(elements)), y);
  }
}

template <DataType type, bool is_maximum>
HWY_INLINE void whole_backward(const PoolArrays& a, std::int64_t plane, std::int64_t elements) {
  using T = Real<type>;
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lanes_of(d);
  std::byte* const dx = a.x + (plane * elements - a.before) * bytes_of<type>;
  // Sums begin with 0, so that they are never -0.
  const T dy = T{0} + load_one<type, T>(a.y + plane * bytes_of<type>) / static_cast<T>(is_maximum ? 1 : elements);
  const auto all = hn::Set(d, is_maximum ? T{0} : dy);
  for (std::int64_t e = 0; e + lanes <= elements; e += lanes) store_stored<type>(d, all, dx + e * bytes_of<type>);
  const std::int64_t last = std::max<std::int64_t>(0, elements - lanes);
  if (elements % lanes > 0) store_stored<type>(d, all, dx + last * bytes_of<type>, elements);
  if constexpr (is_maximum) {
    const std::int64_t winner = a.indices[plane];
    if (winner >= 0 && winner < elements) store_one<type>(dy, dx + winner * bytes_of<type>);
  }
}

template <DataType type, bool is_maximum>
void make_whole_of(const PoolPlanes& g, const PoolArrays arrays, std::int64_t first, std::int64_t end) {
  const std::int64_t elements = g.columns.extent, lanes = lanes_of(hn::ScalableTag<Real<type>>());
  if (g.backward)
    for (std::int64_t plane = first; plane < end; ++plane) whole_backward<type, is_maximum>(arrays, plane, elements);
  else if (elements > 3 * lanes && elements <= 4 * lanes)  // as 7 x 7 of the longest vectors
    for (std::int64_t plane = first; plane < end; ++plane) whole_forward<type, is_maximum, 4>(arrays, plane, elements);
  else
    for (std::int64_t plane = first; plane < end; ++plane) whole_forward<type, is_maximum, 0>(arrays, plane, elements);
}

void make_whole(const PoolPlanes& g, const PoolArrays& a, std::int64_t first, std::int64_t end) {
  for_type_and_pooling(g, [&]<DataType type, bool is_maximum>() { make_whole_of<type, is_maximum>(g, a, first, end); });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(make_whole);

void make_pool_whole(const PoolPlanes& planes, const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(make_whole)(planes, arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
