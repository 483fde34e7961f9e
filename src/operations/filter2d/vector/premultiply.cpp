#include "operations/filter2d/vector/premultiply.h"

#include <cmath>
#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/filter2d/vector/premultiply.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Which lanes hold opacity, and for each lane the one that holds its pixel's; for vectors of whole pixels.
template <class D>
class PixelLanes {
 public:
  PixelLanes(D d, const Opacity& opacity) {
    HWY_ALIGN TI position[hn::MaxLanes(D())];
    HWY_ALIGN TI own[hn::MaxLanes(D())];
    const auto channels = static_cast<TI>(opacity.channels), alpha = static_cast<TI>(opacity.alpha);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) {
      position[i] = static_cast<TI>(i) / channels * channels + alpha;
      own[i] = static_cast<TI>(i);
    }
    const hn::RebindToSigned<D> di;
    source_ = hn::SetTableIndices(d, position);
    is_opacity_ = hn::RebindMask(d, hn::Eq(hn::Load(di, position), hn::Load(di, own)));
  }

  static bool serve(const Opacity& opacity) {
    return static_cast<std::int64_t>(hn::Lanes(D())) % opacity.channels == 0;
  }
  template <class V>
  HWY_INLINE V opacity_of(V pixels) const {
    return hn::TableLookupLanes(pixels, source_);
  }
  template <class V>
  HWY_INLINE V choose(V opacity, V color) const {
    return hn::IfThenElse(is_opacity_, opacity, color);
  }

 private:
  using TI = hwy::MakeSigned<hn::TFromD<D>>;
  decltype(hn::SetTableIndices(D(), static_cast<const TI*>(nullptr))) source_;
  hn::Mask<D> is_opacity_;
};

template <typename Real>
void premultiply_pixels(const Opacity& a, std::int64_t n, Real* row) {
  const Real unit = static_cast<Real>(a.unit);
  for (std::int64_t pixel = 0; pixel < n; pixel += a.channels) {
    const Real opacity = row[pixel + a.alpha] * unit;
    for (std::int64_t i = 0; i < a.channels; ++i) row[pixel + i] *= opacity;
    row[pixel + a.alpha] = opacity;
  }
}

template <typename Real>
void premultiply_row(const Opacity& a, std::int64_t n, Real* row) {
  const hn::ScalableTag<Real> d;
  using Lanes = PixelLanes<decltype(d)>;
  if (!Lanes::serve(a)) return premultiply_pixels(a, n, row);
  const Lanes lanes(d, a);
  const auto unit = hn::Set(d, static_cast<Real>(a.unit));
  for (std::int64_t e = 0; e < n; e += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto pixels = hn::LoadU(d, row + e);
    const auto opacity = hn::Mul(lanes.opacity_of(pixels), unit);
    hn::StoreU(lanes.choose(opacity, hn::Mul(pixels, opacity)), d, row + e);
  }
}

template <typename Real>
void divide_pixels(const Opacity& a, std::int64_t n, Real* sums) {
  const auto weight = static_cast<Real>(a.weight), opaque_sum = static_cast<Real>(a.opaque_sum),
             opaque_value = static_cast<Real>(a.opaque_value), scale = static_cast<Real>(a.scale),
             bias = static_cast<Real>(a.bias);
  for (std::int64_t pixel = 0; pixel < n; pixel += a.channels) {
    const Real opacity = sums[pixel + a.alpha] * weight / opaque_sum;
    for (std::int64_t i = 0; i < a.channels; ++i) {
      const Real color = opacity <= 0 ? 0 : sums[pixel + i] * weight / opacity;
      sums[pixel + i] = i == a.alpha ? opacity * opaque_value : std::fma(scale, color, bias);
    }
  }
}

template <typename Real>
void divide_row(const Opacity& a, std::int64_t n, Real* sums) {
#if HWY_NATIVE_FMA
  const hn::ScalableTag<Real> d;
  using Lanes = PixelLanes<decltype(d)>;
  if (!Lanes::serve(a)) return divide_pixels(a, n, sums);
  const Lanes lanes(d, a);
  const auto weight = hn::Set(d, static_cast<Real>(a.weight)), opaque_sum = hn::Set(d, static_cast<Real>(a.opaque_sum)),
             opaque_value = hn::Set(d, static_cast<Real>(a.opaque_value)),
             scale = hn::Set(d, static_cast<Real>(a.scale)), bias = hn::Set(d, static_cast<Real>(a.bias));
  for (std::int64_t e = 0; e < n; e += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto pixels = hn::Mul(hn::LoadU(d, sums + e), weight);
    const auto opacity = hn::Div(lanes.opacity_of(pixels), opaque_sum);
    const auto color = hn::IfThenZeroElse(hn::Le(opacity, hn::Zero(d)), hn::Div(pixels, opacity));
    hn::StoreU(lanes.choose(hn::Mul(opacity, opaque_value), hn::MulAdd(scale, color, bias)), d, sums + e);
  }
#else
  divide_pixels(a, n, sums);
#endif
}

void PremultiplyF32(const Opacity& a, std::int64_t n, float* row) {
  premultiply_row(a, n, row);
}
void PremultiplyF64(const Opacity& a, std::int64_t n, double* row) {
  premultiply_row(a, n, row);
}
void DivideF32(const Opacity& a, std::int64_t n, float* sums) {
  divide_row(a, n, sums);
}
void DivideF64(const Opacity& a, std::int64_t n, double* sums) {
  divide_row(a, n, sums);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(PremultiplyF32);
HWY_EXPORT(PremultiplyF64);
HWY_EXPORT(DivideF32);
HWY_EXPORT(DivideF64);

void premultiply(const Opacity& opacity, std::int64_t n, float* row) {
  HWY_DYNAMIC_DISPATCH(PremultiplyF32)(opacity, n, row);
}
void premultiply(const Opacity& opacity, std::int64_t n, double* row) {
  HWY_DYNAMIC_DISPATCH(PremultiplyF64)(opacity, n, row);
}
void divide_by_opacity(const Opacity& opacity, std::int64_t n, float* sums) {
  HWY_DYNAMIC_DISPATCH(DivideF32)(opacity, n, sums);
}
void divide_by_opacity(const Opacity& opacity, std::int64_t n, double* sums) {
  HWY_DYNAMIC_DISPATCH(DivideF64)(opacity, n, sums);
}

}  // namespace omniconv::kernels
#endif
