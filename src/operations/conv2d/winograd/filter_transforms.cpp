#include "operations/conv2d/winograd/filter_transforms.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/conv2d/winograd/filter_transforms.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "operations/conv2d/winograd/transforms-inl.h"
#include "vector/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::operations::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace kn = kernels::HWY_NAMESPACE;

// One vector of a tile, whose pixels are `columns` along both axes: rows first, then columns.
template <std::size_t points, std::size_t columns, class D, typename Real, class Store>
HWY_INLINE void transform_tile(D d, const std::array<std::array<double, columns>, points>& matrix,
                               const TileStrip<Real>& strip, std::int64_t at, const Store& store) {
  using V = hn::Vec<D>;
  V half[columns][points];
  OMNICONV_UNROLL for (std::size_t r = 0; r < columns; ++r) {
    V in[columns];
    OMNICONV_UNROLL for (std::size_t s = 0; s < columns; ++s) {
      in[s] = hn::LoadU(d, strip.rows[r] + at + static_cast<std::int64_t>(s) * strip.width);
    }
    analyse(d, matrix, in, half[r]);
  }
  OMNICONV_UNROLL for (std::size_t f = 0; f < points; ++f) {
    V in[columns], out[points];
    OMNICONV_UNROLL for (std::size_t r = 0; r < columns; ++r) {
      in[r] = half[r][f];
    }
    analyse(d, matrix, in, out);
    OMNICONV_UNROLL for (std::size_t e = 0; e < points; ++e) {
      store(out[e], static_cast<std::int64_t>(e * points + f) * strip.pitch);
    }
  }
}

// A vector that ends within the next tile's numbers is written over by it.
template <std::int64_t step, std::size_t points, std::size_t columns, typename Real>
HWY_INLINE void transform_strip(const std::array<std::array<double, columns>, points>& matrix,
                                const TileStrip<Real>& strip) {
  const hn::ScalableTag<Real> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t all = strip.tiles * strip.width;
  for (std::int64_t tile = 0; tile < strip.tiles; ++tile)
    for (std::int64_t lane = 0; lane < strip.width; lane += lanes) {
      const std::int64_t from = tile * step * strip.width + lane, left = all - tile * strip.width - lane;
      Real* const to = strip.to + tile * strip.width + lane;
      if (left >= lanes)
        transform_tile(d, matrix, strip, from,
                       [&](V value, std::int64_t at) HWY_ATTR { hn::StoreU(value, d, to + at); });
      else
        transform_tile(d, matrix, strip, from,
                       [&](V value, std::int64_t at) HWY_ATTR { kn::store_first(d, value, to + at, left); });
    }
}

template <int taps, typename Real>
struct Input {
  static void run(const TileStrip<Real>& strip) { transform_strip<taps>(winograd_matrices<3, taps>.input, strip); }
};
template <int taps, typename Real>
struct Gradient {
  static void run(const TileStrip<Real>& strip) { transform_strip<taps>(winograd_matrices<3, taps>.filter, strip); }
};

template <int taps, typename Real>
struct Filter {
  static void run(const Real* sums, std::int64_t pitch, std::int64_t count, const FilterPlace<Real>& place) {
    constexpr std::size_t width = 3;
    const hn::ScalableTag<Real> d;
    using V = hn::Vec<decltype(d)>;
    const bool whole = count == static_cast<std::int64_t>(hn::Lanes(d));
    V out[width][width];
    combine_both<3, taps>(d, sums, pitch, out);
    OMNICONV_UNROLL for (std::size_t i = 0; i < width; ++i) {
      OMNICONV_UNROLL for (std::size_t j = 0; j < width; ++j) {
        const std::size_t output = i * width + j, tap = place.turned ? width * width - 1 - output : output;
        Real* const to = place.to + static_cast<std::int64_t>(tap) * place.tap_pitch;
        V value = out[i][j];
        if (place.accumulate) value = hn::Add(whole ? hn::LoadU(d, to) : kn::load_first(d, to, count), value);
        if (whole)
          hn::StoreU(value, d, to);
        else
          kn::store_first(d, value, to, count);
      }
    }
  }
};

template <int taps, typename Real>
WinogradFilterTransforms<Real> all_of() {
  return {
      .lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<Real>())),
      .input = Input<taps, Real>::run,
      .gradient = Gradient<taps, Real>::run,
      .filter = Filter<taps, Real>::run,
  };
}

WinogradFilterTransforms<float> FilterTransformsF32(WinogradForm form) {
  return form.taps == 4 ? all_of<4, float>() : all_of<2, float>();
}
WinogradFilterTransforms<double> FilterTransformsF64(WinogradForm form) {
  return form.taps == 4 ? all_of<4, double>() : all_of<2, double>();
}

}  // namespace omniconv::operations::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::operations {

HWY_EXPORT(FilterTransformsF32);
HWY_EXPORT(FilterTransformsF64);

WinogradFilterTransforms<float> winograd_filter_transforms_f32(WinogradForm form) {
  return HWY_DYNAMIC_DISPATCH(FilterTransformsF32)(form);
}
WinogradFilterTransforms<double> winograd_filter_transforms_f64(WinogradForm form) {
  return HWY_DYNAMIC_DISPATCH(FilterTransformsF64)(form);
}

}  // namespace omniconv::operations
#endif
