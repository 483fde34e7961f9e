// nchw with rows shorter than a vector: a vector is one element of each of so many planes as it has lanes, which takes
// turning what is read and what is written.
#include "operations/pool2d/direct/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/planes.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/pool2d/direct/windows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Elements of each plane that are turned at a time.
constexpr std::int64_t chunk = 64;

// A group of planes, so many as there are lanes but for the last group, whose last plane stands for those that are not.
template <class D>
struct Planes {
  Planes(D d, const Pool2dShape& g, std::int64_t group)
      : first(group * lanes_of(d)), count(std::min(lanes_of(d), g.n * g.c - first)) {}
  std::int64_t of_lane(std::int64_t lane) const { return first + std::min(lane, count - 1); }
  std::int64_t first, count;
};

// Four rows of four elements (of f64 two of two), `from_step` apart, as columns.
template <typename T>
HWY_INLINE void turn_square(const T* from, [[maybe_unused]] std::int64_t from_step, T* to,
                            [[maybe_unused]] std::int64_t to_step) {
#if HWY_TARGET == HWY_SCALAR
  *to = *from;
#else
  const hn::FixedTag<T, 16 / sizeof(T)> d;
  const auto row = [&](std::int64_t i) HWY_ATTR { return hn::LoadU(d, from + i * from_step); };
  if constexpr (sizeof(T) == 8) {
    hn::StoreU(hn::InterleaveLower(d, row(0), row(1)), d, to);
    hn::StoreU(hn::InterleaveUpper(d, row(0), row(1)), d, to + to_step);
  } else {
    const hn::RepartitionToWide<decltype(d)> pairs;
    const auto lower = [&](std::int64_t i)
                           HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveLower(d, row(i), row(i + 1))); };
    const auto upper = [&](std::int64_t i)
                           HWY_ATTR { return hn::BitCast(pairs, hn::InterleaveUpper(d, row(i), row(i + 1))); };
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, lower(0), lower(2))), d, to);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, lower(0), lower(2))), d, to + to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, upper(0), upper(2))), d, to + 2 * to_step);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, upper(0), upper(2))), d, to + 3 * to_step);
  }
#endif
}

// An array of so many elements, of which each plane has `of_plane`.
template <typename Element>
struct PlaneArray {
  const Element* data;
  std::int64_t elements, of_plane;
};

// Elements [begin, end) of each plane, as vectors along the planes. What follows them in the array is read with them.
template <class D>
class Turned {
 public:
  using T = hn::TFromD<D>;

  template <DataType type>
  void load(const Planes<D>& planes, const PlaneArray<std::byte>& array, std::int64_t begin, std::int64_t end) {
    load_with(planes, array, begin, end, [&](std::int64_t at, std::int64_t there) HWY_ATTR {
      return load_stored<type>(D(), array.data + at * bytes_of<type>, there);
    });
  }
  void load(const Planes<D>& planes, const PlaneArray<std::int32_t>& array, std::int64_t begin, std::int64_t end) {
    load_with(planes, array, begin, end, [&](std::int64_t at, std::int64_t there) HWY_ATTR {
      return hn::BitCast(D(), load_indices(D(), array.data + at, there));
    });
  }
  hn::Vec<D> operator[](std::int64_t i) const { return hn::Load(D(), turned_ + i * lanes_of(D())); }
  IndexVec<D> indices(std::int64_t i) const { return hn::BitCast(IndexTag<D>(), (*this)[i]); }

 private:
  template <typename Element, class Load>
  HWY_INLINE void load_with(const Planes<D>& planes, const PlaneArray<Element>& array, std::int64_t begin,
                            std::int64_t end, const Load& load) {
    const std::int64_t lanes = lanes_of(D());
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      const std::int64_t plane = planes.of_lane(lane) * array.of_plane;
      for (std::int64_t at = begin; at < end; at += lanes)
        hn::Store(load(plane + at, array.elements - plane - at), D(), rows_ + lane * chunk + at - begin);
    }
    constexpr auto side = static_cast<std::int64_t>(HWY_TARGET == HWY_SCALAR ? 1 : 16 / sizeof(T));
    for (std::int64_t lane = 0; lane < lanes; lane += side)
      for (std::int64_t i = 0; i < end - begin; i += side)
        turn_square(rows_ + lane * chunk + i, chunk, turned_ + i * lanes + lane, lanes);
  }

  static constexpr std::size_t capacity = static_cast<std::size_t>(chunk) * hn::MaxLanes(D());
  HWY_ALIGN T rows_[capacity];
  HWY_ALIGN T turned_[capacity];
};

// One element of each plane, `all` elements apart.
template <typename Element>
HWY_INLINE void scatter(const std::byte* from, std::byte* to, std::int64_t all, std::int64_t count) {
  for (std::int64_t lane = 0; lane < count; ++lane)
    std::memcpy(to + lane * all * static_cast<std::int64_t>(sizeof(Element)),
                from + lane * static_cast<std::int64_t>(sizeof(Element)), sizeof(Element));
}
template <DataType type>
HWY_INLINE void scatter_elements(const std::byte* from, std::byte* to, std::int64_t all, std::int64_t count) {
  using Bits = std::conditional_t<type == DataType::f64, std::uint64_t,
                                  std::conditional_t<type == DataType::f32, std::uint32_t, std::uint16_t>>;
  scatter<Bits>(from, to, all, count);
}

// Rows of windows q that are among the elements [begin, end) of a plane, in order: body(row of x, first column, end).
template <typename Body>
HWY_INLINE void for_segments(const PoolAxis& columns, std::int64_t q, std::int64_t begin, std::int64_t end,
                             const Body& body) {
  const std::int64_t width = columns.extent;
  const std::int64_t left = std::max<std::int64_t>(columns.begin(q), 0),
                     right = std::min(columns.begin(q) + columns.taps, width);
  for (std::int64_t row = begin / width; row * width < end; ++row)
    body(row, std::max(left, begin - row * width), std::min(right, end - row * width));
}

template <DataType type, Pooling pooling>
HWY_NOINLINE void planes_forward_row(const PoolArrays& a, std::int64_t group, std::int64_t p) {
  using T = Real<type>;
  using D = hn::ScalableTag<T>;
  const D d;
  const IndexTag<D> indices;
  const Pool2dShape& g = *a.shape;
  const Planes planes(d, g, group);
  const std::int64_t width = g.columns.extent, of_x = g.rows.extent * width, lanes = lanes_of(d),
                     outputs = g.columns.outputs, of_y = g.rows.outputs * outputs;
  const PoolRange rows = g.rows.taps_of(p);
  const std::int64_t top = g.rows.begin(p), begin = (top + rows.first) * width, end = (top + rows.end) * width;

  // Of each window of the row, there being fewer than lanes.
  HWY_ALIGN T values[hn::MaxLanes(d) * hn::MaxLanes(d)];
  HWY_ALIGN hn::TFromD<decltype(indices)> places[hn::MaxLanes(d) * hn::MaxLanes(d)];
  for (std::int64_t q = 0; q < outputs; ++q) {
    const bool is_maximum = pooling == Pooling::maximum;
    hn::Store(hn::Set(d, is_maximum ? -std::numeric_limits<T>::infinity() : T{0}), d, values + q * lanes);
    hn::Store(every_index(d, rows.first * g.columns.taps + g.columns.taps_of(q).first), indices, places + q * lanes);
  }
  Turned<D> turned;
  for (std::int64_t from = begin; from < end; from += chunk) {
    const std::int64_t until = std::min(end, from + chunk);
    turned.template load<type>(planes, {a.x, g.x_elements(), of_x}, from, until);
    for (std::int64_t q = 0; q < outputs; ++q) {
      Maximum<D> best{hn::Load(d, values + q * lanes), hn::Load(indices, places + q * lanes)};
      for_segments(g.columns, q, from, until, [&](std::int64_t row, std::int64_t left, std::int64_t right) HWY_ATTR {
        const std::int64_t index = (row - top) * g.columns.taps - g.columns.begin(q);
        for (std::int64_t column = left; column < right; ++column) {
          const auto x = turned[row * width + column - from];
          if constexpr (pooling == Pooling::maximum)
            take(d, x, every_index(d, index + column), best);
          else
            best.value = hn::Add(best.value, x);
        }
      });
      hn::Store(best.value, d, values + q * lanes);
      hn::Store(best.index, indices, places + q * lanes);
    }
  }
  HWY_ALIGN std::byte stored[hn::MaxLanes(d) * sizeof(T)];
  HWY_ALIGN std::int32_t stored_indices[hn::MaxLanes(d)];
  for (std::int64_t q = 0; q < outputs; ++q) {
    const std::int64_t to = planes.first * of_y + p * outputs + q;
    const auto value = hn::Load(d, values + q * lanes);
    if constexpr (pooling == Pooling::maximum) {
      store_maxima<type>(d, Maximum<D>{value, hn::Load(indices, places + q * lanes)}, stored, stored_indices, lanes,
                         a.x, [&](std::int64_t lane, std::int32_t index) {
                           return planes.of_lane(lane) * of_x + (top + index / g.columns.taps) * width +
                                  g.columns.begin(q) + index % g.columns.taps;
                         });
      scatter<std::int32_t>(reinterpret_cast<const std::byte*>(stored_indices),
                            reinterpret_cast<std::byte*>(a.indices + to), of_y, planes.count);
    } else {
      store_stored<type>(d, hn::Div(value, hn::Set(d, static_cast<T>(g.divisor(p, q)))), stored);
    }
    scatter_elements<type>(stored, a.y + to * bytes_of<type>, of_y, planes.count);
  }
}

template <DataType type, Pooling pooling>
HWY_NOINLINE void planes_backward_row(const PoolArrays& a, std::int64_t group, std::int64_t h, const PoolRange& rows) {
  using T = Real<type>;
  using D = hn::ScalableTag<T>;
  const D d;
  const Pool2dShape& g = *a.shape;
  const Planes planes(d, g, group);
  const std::int64_t width = g.columns.extent, of_x = g.rows.extent * width, lanes = lanes_of(d),
                     outputs = g.columns.outputs, of_y = g.rows.outputs * outputs;

  // Of each column of the row, there being fewer than lanes.
  HWY_ALIGN T sums[hn::MaxLanes(d) * hn::MaxLanes(d)]{};
  Turned<D> dy, indices;
  const std::int64_t end = rows.end * outputs;
  for (std::int64_t from = rows.first * outputs; from < end; from += chunk) {
    const std::int64_t until = std::min(end, from + chunk);
    dy.template load<type>(planes, {a.y, g.y_elements(), of_y}, from, until);
    if constexpr (pooling == Pooling::maximum) indices.load(planes, {a.indices, g.y_elements(), of_y}, from, until);
    for (std::int64_t at = from; at < until; ++at) {
      const std::int64_t p = at / outputs, q = at - p * outputs, left = g.columns.begin(q);
      auto share = dy[at - from];
      if constexpr (pooling == Pooling::average_inside)
        share = hn::Div(share, hn::Set(d, static_cast<T>(g.divisor(p, q))));
      const std::int64_t index = (h - g.rows.begin(p)) * g.columns.taps - left;
      for (std::int64_t w = std::max<std::int64_t>(left, 0); w < std::min(left + g.columns.taps, width); ++w) {
        const auto sum = hn::Load(d, sums + w * lanes);
        auto index_of = every_index(d, 0);
        if constexpr (pooling == Pooling::maximum) index_of = indices.indices(at - from);
        hn::Store(add_share<pooling>(d, sum, index_of, index + w, share), d, sums + w * lanes);
      }
    }
  }
  HWY_ALIGN std::byte stored[hn::MaxLanes(d) * sizeof(T)];
  for (std::int64_t w = 0; w < width; ++w) {
    auto sum = hn::Load(d, sums + w * lanes);
    if constexpr (pooling == Pooling::average)
      sum = hn::Div(sum, hn::Set(d, static_cast<T>(g.rows.taps * g.columns.taps)));
    store_stored<type>(d, sum, stored);
    scatter_elements<type>(stored, a.x + (planes.first * of_x + h * width + w) * bytes_of<type>, of_x, planes.count);
  }
}

void planes_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for_rows(arrays, first, end, arrays.shape->rows.outputs,
             [&](std::int64_t group, std::int64_t p) { planes_forward_row<type, pooling>(arrays, group, p); });
  });
}

void planes_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for_gradient_rows(arrays, first, end, [&](std::int64_t group, std::int64_t h, const PoolRange& rows) {
      planes_backward_row<type, pooling>(arrays, group, h, rows);
    });
  });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(planes_forward);
HWY_EXPORT(planes_backward);

void pool_planes_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(planes_forward)(arrays, first, end);
}
void pool_planes_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(planes_backward)(arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
