#include "operations/conv2d/fft/products.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/conv2d/fft/products.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::operations::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace kn = kernels::HWY_NAMESPACE;

// Rows whose sums stay in registers. Four and their two sums each hide the latency of multiply-adds.
constexpr std::int64_t most_rows = 4;

#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 4")

template <std::int64_t rows, typename Real>
HWY_INLINE void multiply_rows(const FftProduct<Real>& p, std::int64_t row, std::int64_t panel) {
  const hn::ScalableTag<Real> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Real* from = p.rows + row * p.row_pitch;
  const Real* column = p.columns + panel * p.panel_pitch;
  Real* const sums = p.sums + row * p.sum_row + panel * p.sum_panel;
  V re[rows], im[rows];
  OMNICONV_UNROLL for (std::int64_t i = 0; i < rows; ++i) {
    re[i] = p.add ? hn::Load(d, sums + i * p.sum_row) : hn::Zero(d);
    im[i] = p.add ? hn::Load(d, sums + i * p.sum_row + lanes) : hn::Zero(d);
  }
  for (std::int64_t done = 0; done < p.steps; done += p.run, from += p.run_pitch) {
    const std::int64_t steps = std::min(p.run, p.steps - done);
    const Real* at = from;
    for (std::int64_t step = 0; step < steps; ++step, at += p.row_step, column += 2 * lanes) {
      const V column_re = kn::in_register(hn::Load(d, column)),
              column_im = kn::in_register(hn::Load(d, column + lanes));
      OMNICONV_UNROLL for (std::int64_t i = 0; i < rows; ++i) {
        const V a = hn::Set(d, at[i * p.row_pitch]), b = hn::Set(d, at[i * p.row_pitch + lanes]);
        re[i] = hn::NegMulAdd(b, column_im, hn::MulAdd(a, column_re, re[i]));
        im[i] = hn::MulAdd(b, column_re, hn::MulAdd(a, column_im, im[i]));
      }
    }
  }
  OMNICONV_UNROLL for (std::int64_t i = 0; i < rows; ++i) {
    hn::Store(re[i], d, sums + i * p.sum_row);
    hn::Store(im[i], d, sums + i * p.sum_row + lanes);
  }
}

template <typename Real>
void multiply(const FftProduct<Real>& p) {
  for (std::int64_t panel = 0; panel < p.panels; ++panel)
    for (std::int64_t row = 0; row < p.row_count; row += most_rows) switch (std::min(p.row_count - row, most_rows)) {
        case 1: multiply_rows<1>(p, row, panel); break;
        case 2: multiply_rows<2>(p, row, panel); break;
        case 3: multiply_rows<3>(p, row, panel); break;
        default: multiply_rows<4>(p, row, panel);
      }
}

template <typename Real>
void scale(const FftScaling<Real>& s) {
  const hn::ScalableTag<Real> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t column = 0; column < s.columns; ++column)
    for (std::int64_t bin = 0; bin < s.bins; ++bin) {
      Real* const value = s.values + column * s.value_column + bin * 2 * lanes;
      const Real* const factor = s.factors + column * s.factor_column + bin * 2 * lanes;
      const V a = s.lane < 0 ? hn::Load(d, factor) : hn::Set(d, factor[s.lane]),
              b = s.lane < 0 ? hn::Load(d, factor + lanes) : hn::Set(d, factor[s.lane + lanes]);
      const V re = hn::Load(d, value), im = hn::Load(d, value + lanes);
      hn::Store(hn::NegMulAdd(b, im, hn::Mul(a, re)), d, value);
      hn::Store(hn::MulAdd(b, re, hn::Mul(a, im)), d, value + lanes);
    }
}

template <typename Real>
void add(const FftAddition<Real>& s) {
  const hn::ScalableTag<Real> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t column = 0; column < s.columns; ++column)
    for (std::int64_t bin = 0; bin < s.bins; ++bin) {
      const std::int64_t at = column * s.column_pitch + bin * 2 * lanes;
      const V a = hn::Load(d, s.factors + at), b = hn::Load(d, s.factors + at + lanes), re = hn::Load(d, s.values + at),
              im = hn::Load(d, s.values + at + lanes);
      hn::Store(hn::NegMulAdd(b, im, hn::MulAdd(a, re, hn::Load(d, s.sums + at))), d, s.sums + at);
      hn::Store(hn::MulAdd(b, re, hn::MulAdd(a, im, hn::Load(d, s.sums + at + lanes))), d, s.sums + at + lanes);
    }
}

void MultiplyF32(const FftProduct<float>& product) {
  multiply(product);
}
void MultiplyF64(const FftProduct<double>& product) {
  multiply(product);
}
void ScaleF32(const FftScaling<float>& scaling) {
  scale(scaling);
}
void ScaleF64(const FftScaling<double>& scaling) {
  scale(scaling);
}
void AddF32(const FftAddition<float>& addition) {
  add(addition);
}
void AddF64(const FftAddition<double>& addition) {
  add(addition);
}

}  // namespace omniconv::operations::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::operations {

HWY_EXPORT(MultiplyF32);
HWY_EXPORT(MultiplyF64);
HWY_EXPORT(ScaleF32);
HWY_EXPORT(ScaleF64);
HWY_EXPORT(AddF32);
HWY_EXPORT(AddF64);

void multiply_fft(const FftProduct<float>& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyF32)(product);
}
void multiply_fft(const FftProduct<double>& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyF64)(product);
}
void scale_fft(const FftScaling<float>& scaling) {
  HWY_DYNAMIC_DISPATCH(ScaleF32)(scaling);
}
void scale_fft(const FftScaling<double>& scaling) {
  HWY_DYNAMIC_DISPATCH(ScaleF64)(scaling);
}
void add_fft(const FftAddition<float>& addition) {
  HWY_DYNAMIC_DISPATCH(AddF32)(addition);
}
void add_fft(const FftAddition<double>& addition) {
  HWY_DYNAMIC_DISPATCH(AddF64)(addition);
}

}  // namespace omniconv::operations
#endif
