#include "vector/matrix/conv_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vector/matrix/conv_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename Real>
void scaled_row(std::int64_t channels, const Real* weights, const Real* x, Real* sums) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t j = 0; j < tile_columns; j += lanes) {
    const auto value = hn::LoadU(d, x + j);
    for (std::int64_t i = 0; i < channels; ++i) {
      Real* const sum = sums + i * tile_columns + j;
      hn::StoreU(hn::MulAdd(hn::Set(d, weights[i]), value, hn::LoadU(d, sum)), d, sum);
    }
  }
}

template <typename Real>
void products(std::int64_t channels, const Real* x, const Real* y, Real* sums) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t j = 0; j < tile_columns; j += lanes) {
    const auto value = hn::LoadU(d, x + j);
    for (std::int64_t i = 0; i < channels; ++i) {
      Real* const sum = sums + i * tile_columns + j;
      hn::StoreU(hn::MulAdd(value, hn::LoadU(d, y + i * tile_columns + j), hn::LoadU(d, sum)), d, sum);
    }
  }
}

void scaled_row_f32(std::int64_t channels, const float* weights, const float* x, float* sums) {
  scaled_row(channels, weights, x, sums);
}
void scaled_row_f64(std::int64_t channels, const double* weights, const double* x, double* sums) {
  scaled_row(channels, weights, x, sums);
}
void products_f32(std::int64_t channels, const float* x, const float* y, float* sums) {
  products(channels, x, y, sums);
}
void products_f64(std::int64_t channels, const double* x, const double* y, double* sums) {
  products(channels, x, y, sums);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(scaled_row_f32);
HWY_EXPORT(scaled_row_f64);
HWY_EXPORT(products_f32);
HWY_EXPORT(products_f64);

void add_scaled_row(std::int64_t channels, const float* weights, const float* x, float* sums) {
  HWY_DYNAMIC_DISPATCH(scaled_row_f32)(channels, weights, x, sums);
}
void add_scaled_row(std::int64_t channels, const double* weights, const double* x, double* sums) {
  HWY_DYNAMIC_DISPATCH(scaled_row_f64)(channels, weights, x, sums);
}
void add_products(std::int64_t channels, const float* x, const float* y, float* sums) {
  HWY_DYNAMIC_DISPATCH(products_f32)(channels, x, y, sums);
}
void add_products(std::int64_t channels, const double* x, const double* y, double* sums) {
  HWY_DYNAMIC_DISPATCH(products_f64)(channels, x, y, sums);
}

}  // namespace omniconv::kernels
#endif
