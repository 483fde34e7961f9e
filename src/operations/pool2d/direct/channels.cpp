// nhwc: a vector is neighbouring channels of one pixel.
#include "operations/pool2d/direct/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/pool2d/direct/channels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/pool2d/direct/windows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <DataType type, Pooling pooling>
HWY_INLINE void channels_forward_pixel(const PoolArrays& a, std::int64_t image, std::int64_t p, std::int64_t q) {
  const hn::ScalableTag<Real<type>> d;
  const Pool2dShape& g = *a.shape;
  constexpr std::int64_t size = bytes_of<type>;
  const PoolRange rows = g.rows.taps_of(p), columns = g.columns.taps_of(q);
  const std::int64_t to = g.y_at(image, 0, p, q) - a.written, row_step = g.columns.extent * g.c;
  const auto x_at = [&](std::int64_t r, std::int64_t s) {
    return g.x_at(image, 0, g.rows.begin(p) + r, g.columns.begin(q) + s);
  };
  const std::int64_t start = x_at(rows.first, columns.first);
  for (std::int64_t c = 0; c < g.c; c += lanes_of(d)) {
    const std::int64_t first = vector_begin(c, g.c, lanes_of(d)), count = g.c;
    const std::byte* row = a.x + (start + first) * size;
    if constexpr (pooling == Pooling::maximum) {
      auto best = no_maximum(d, every_index(d, rows.first * g.columns.taps + columns.first));
      for (std::int64_t r = rows.first; r < rows.end; ++r, row += row_step * size)
        for (std::int64_t s = columns.first; s < columns.end; ++s)
          take(d, load_stored<type>(d, row + (s - columns.first) * g.c * size, count),
               every_index(d, r * g.columns.taps + s), best);
      store_maxima<type>(d, best, a.y + (to + first) * size, a.indices + to + first, count, a.x,
                         [&](std::int64_t lane, std::int32_t index) {
                           return x_at(index / g.columns.taps, index % g.columns.taps) + first + lane;
                         });
    } else {
      auto sum = hn::Zero(d);
      for (std::int64_t r = rows.first; r < rows.end; ++r, row += row_step * size)
        for (std::int64_t s = 0; s < columns.count(); ++s)
          sum = hn::Add(sum, load_stored<type>(d, row + s * g.c * size, count));
      const auto mean = hn::Div(sum, hn::Set(d, static_cast<Real<type>>(g.divisor(p, q))));
      store_stored<type>(d, mean, a.y + (to + first) * size, count);
    }
  }
}

template <DataType type, Pooling pooling>
HWY_INLINE void channels_backward_pixel(const PoolArrays& a, std::int64_t image, std::int64_t h, std::int64_t w,
                                        const PoolRange& rows, const PoolRange& columns) {
  const hn::ScalableTag<Real<type>> d;
  const Pool2dShape& g = *a.shape;
  const std::int64_t to = g.x_at(image, 0, h, w) - a.written, start = g.y_at(image, 0, rows.first, columns.first),
                     row_step = g.columns.outputs * g.c;
  const std::int64_t row_index = (h - g.rows.begin(rows.first)) * g.columns.taps + w - g.columns.begin(columns.first);
  for (std::int64_t c = 0; c < g.c; c += lanes_of(d)) {
    const std::int64_t first = vector_begin(c, g.c, lanes_of(d));
    auto sum = hn::Zero(d);
    for (std::int64_t p = rows.first; p < rows.end; ++p) {
      std::int64_t from = start + (p - rows.first) * row_step + first,
                   index = row_index - (p - rows.first) * g.rows.stride * g.columns.taps;
      for (std::int64_t q = columns.first; q < columns.end; ++q, from += g.c, index -= g.columns.stride) {
        auto dy = load_stored<type>(d, a.y + from * bytes_of<type>, g.c);
        if constexpr (pooling == Pooling::average_inside)
          dy = hn::Div(dy, hn::Set(d, static_cast<Real<type>>(g.divisor(p, q))));
        auto indices = every_index(d, 0);
        if constexpr (pooling == Pooling::maximum) indices = load_indices(d, a.indices + from, g.c);
        sum = add_share<pooling>(d, sum, indices, index, dy);
      }
    }
    if constexpr (pooling == Pooling::average) sum = hn::Div(sum, hn::Set(d, static_cast<Real<type>>(g.divisor(0, 0))));
    store_stored<type>(d, sum, a.x + (to + first) * bytes_of<type>, g.c);
  }
}

void channels_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  const Pool2dShape& g = *arrays.shape;
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for_rows(arrays, first, end, g.rows.outputs, [&](std::int64_t image, std::int64_t p) {
      for (std::int64_t q = 0; q < g.columns.outputs; ++q) channels_forward_pixel<type, pooling>(arrays, image, p, q);
    });
  });
}

void channels_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  const Pool2dShape& g = *arrays.shape;
  const PoolWindows left(g.columns, 0);
  for_type_and_pooling(arrays, [&]<DataType type, Pooling pooling>() {
    for_gradient_rows(arrays, first, end, [&](std::int64_t image, std::int64_t h, const PoolRange& rows) {
      PoolWindows columns = left;
      for (std::int64_t w = 0; w < g.columns.extent; ++w, ++columns)
        channels_backward_pixel<type, pooling>(arrays, image, h, w, rows, *columns);
    });
  });
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(channels_forward);
HWY_EXPORT(channels_backward);

void pool_channels_forward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(channels_forward)(arrays, first, end);
}
void pool_channels_backward(const PoolArrays& arrays, std::int64_t first, std::int64_t end) {
  HWY_DYNAMIC_DISPATCH(channels_backward)(arrays, first, end);
}

}  // namespace omniconv::kernels
#endif
