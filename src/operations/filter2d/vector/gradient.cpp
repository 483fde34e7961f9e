#include "operations/filter2d/vector/gradient.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/filter2d/vector/gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 8")

template <typename Real>
void magnitudes_of(const Real* x, const Real* y, std::int64_t n, bool exact, Real* to) {
  const hn::ScalableTag<Real> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t e = 0;
  if (HWY_NATIVE_FMA || exact)
    for (; e + lanes <= n; e += lanes) {
      const auto gx = hn::LoadU(d, x + e), gy = hn::LoadU(d, y + e);
      hn::StoreU(hn::Sqrt(hn::MulAdd(gx, gx, hn::Mul(gy, gy))), d, to + e);
    }
  for (; e < n; ++e) to[e] = std::sqrt(std::fma(x[e], x[e], y[e] * y[e]));
}

void MagnitudesF32(const float* x, const float* y, std::int64_t n, bool exact, float* to) {
  magnitudes_of(x, y, n, exact, to);
}
void MagnitudesF64(const double* x, const double* y, std::int64_t n, bool exact, double* to) {
  magnitudes_of(x, y, n, exact, to);
}

// Sums down the columns, before those along the row.
struct Scratch {
  std::int16_t *smoothed, *differences;
};
Scratch scratch_row(const Differences& a, int j) {
  const std::int64_t pitch = difference_pitch(a.n, a.step);
  return {a.scratch + 2 * j * pitch, a.scratch + (2 * j + 1) * pitch};
}

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

// The weights of a smoothing in registers: read where they are used they would be read anew after every store. unit:
// the outer weights are 1.
template <bool unit, class V>
struct Smoother {
  template <class D>
  HWY_INLINE Smoother(D d, DifferencePair::Smoothing w) : outer(hn::Set(d, w.outer)), middle(hn::Set(d, w.middle)) {}

  HWY_INLINE V operator()(V x0, V x1, V x2) const {
    auto sides = hn::Add(x0, x2);
    if constexpr (!unit) sides = hn::Mul(sides, outer);
    return hn::Add(sides, hn::Mul(x1, middle));
  }

  V outer, middle;
};

// All rows at once, since neighbouring outputs share two input rows of three.
template <bool unit>
HWY_INLINE void differences_down(const Differences& a) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> stored;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Smoother<unit, hn::Vec<decltype(d)>> smooth(d, a.pair.x);
  const std::int64_t end = a.n + 2 * a.step;
  const std::uint8_t* input[difference_rows + 2];
  std::copy_n(a.inputs, difference_rows + 2, input);
  Scratch to[difference_rows];
  for (int j = 0; j < difference_rows; ++j) to[j] = scratch_row(a, j);
  for (std::int64_t e = 0; e < end; e += lanes) {
    hn::Vec<decltype(d)> x[difference_rows + 2];
    OMNICONV_UNROLL for (int i = 0; i < difference_rows + 2; ++i) {
      x[i] = hn::PromoteTo(d, hn::LoadU(stored, input[i] + e));
    }
    OMNICONV_UNROLL for (int j = 0; j < difference_rows; ++j) {
      hn::StoreU(smooth(x[j], x[j + 1], x[j + 2]), d, to[j].smoothed + e);
      hn::StoreU(hn::Sub(x[j + 2], x[j]), d, to[j].differences + e);
    }
  }
}

// Both sums of a vector of elements.
template <class V>
struct Sums {
  V gx, gy;
};
template <class D, class Smooth>
HWY_INLINE auto sums_along(D d, const Smooth& smooth, std::int64_t step, const Scratch& row, std::int64_t e) {
  const auto smoothed = [&](std::int64_t at) HWY_ATTR { return hn::LoadU(d, row.smoothed + at); };
  const auto difference = [&](std::int64_t at) HWY_ATTR { return hn::LoadU(d, row.differences + at); };
  return Sums<hn::Vec<D>>{hn::Sub(smoothed(e + 2 * step), smoothed(e)),
                          smooth(difference(e), difference(e + step), difference(e + 2 * step))};
}

// What Highway lacks, or guards against operands that do not occur here.
#undef OMNICONV_X86
#if HWY_TARGET <= HWY_AVX3
#define OMNICONV_X86(NAME) _mm512_##NAME
#elif HWY_TARGET == HWY_AVX2
#define OMNICONV_X86(NAME) _mm256_##NAME
#else
#define OMNICONV_X86(NAME) _mm_##NAME
#endif

// gx^2 + gy^2 in 32 bits, of 16-bit pairs.
template <class V>
HWY_INLINE auto sum_of_squares(V pairs) {
  return hn::Vec<hn::ScalableTag<std::int32_t>>{OMNICONV_X86(madd_epi16)(pairs.raw, pairs.raw)};
}

// Both sums of a vector of elements as gx^2 + gy^2: of the lower and of the upper half of every 128-bit block.
template <class D, class V>
HWY_INLINE auto squares(D d, Sums<V> sums) {
  return Sums{sum_of_squares(hn::InterleaveLower(d, sums.gx, sums.gy)),
              sum_of_squares(hn::InterleaveUpper(d, sums.gx, sums.gy))};
}

// The magnitude rounded to nearest, right up to 255; more is 255 or more, in 16 bits. The nearest integer k to the root
// of an integer n is the one with k^2 - k < n <= k^2 + k, and fp32's rounding of the root, less than a millionth of it,
// never carries it across a half, from which it keeps a distance of 1/4 / 512 at least. So an approximate root does,
// whose relative error is at most 1.5 * 2^-12, less than 0.1 up to 256: cut off after adding 0.4, it is k or k - 1, and
// n tells which. The approximate root of 0 is NaN, which ends as the lowest integer: below zero, which stands for 0.
template <class D, class V>
HWY_INLINE V rounded_magnitude(D d, Sums<V> sums) {
  const hn::ScalableTag<float> real;
  const hn::RebindToUnsigned<D> bits;
  const auto [low, high] = squares(d, sums);
  const auto nearly = [&](auto n) HWY_ATTR {
    const auto value = hn::ConvertTo(real, n);
    const auto root = hn::MulAdd(value, hn::ApproximateReciprocalSqrt(value), hn::Set(real, 0.4f));
    return OMNICONV_X86(cvttps_epi32)(root.raw);
  };
  // Halves of 128-bit blocks are put together again as they were taken apart.
  const V k{OMNICONV_X86(packs_epi32)(nearly(low), nearly(high))};
  const hn::Vec<decltype(bits)> n{OMNICONV_X86(packus_epi32)(low.raw, high.raw)};  // 255.5^2 and more: 65535 at most
  const auto next = hn::Add(k, hn::Set(d, std::int16_t{1}));
  const auto last = hn::BitCast(bits, hn::Mul(k, next));
  return hn::IfThenElse(hn::RebindMask(d, hn::Gt(n, last)), next, k);
}

#if HWY_TARGET <= HWY_AVX3
// Two vectors as 64 bytes, with one permutation for both.
template <class V>
HWY_INLINE void store_bytes(V first, V second, std::uint8_t* to) {
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi64(order, _mm512_packus_epi16(first.raw, second.raw)));
}
#endif

// `load(d, e)` gives the sums of a vector of elements; reads past n, writes up to it.
template <class Load>
HWY_INLINE void store_rounded(std::int64_t n, std::uint8_t* to, const Load& load) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::Rebind<std::uint8_t, decltype(d)> stored;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t e = 0;
#if HWY_TARGET <= HWY_AVX3
  for (; e + 2 * lanes <= n; e += 2 * lanes)
    store_bytes(rounded_magnitude(d, load(d, e)), rounded_magnitude(d, load(d, e + lanes)), to + e);
#endif
  const auto rounded = [&](std::int64_t at)
                           HWY_ATTR { return hn::DemoteTo(stored, rounded_magnitude(d, load(d, at))); };
  for (; e + lanes <= n; e += lanes) hn::StoreU(rounded(e), stored, to + e);
  if (e == n) return;
  std::uint8_t last[difference_slack];
  hn::StoreU(rounded(e), stored, last);
  std::memcpy(to + e, last, static_cast<std::size_t>(n - e));
}

template <bool unit>
void store_real(const Differences& a, const Scratch& row, float* to) {
  const hn::ScalableTag<std::int16_t> d;
  const hn::ScalableTag<float> real;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Smoother<unit, hn::Vec<decltype(d)>> smooth(d, a.pair.y);
  for (std::int64_t e = 0; e < a.n; e += lanes) {
    const auto [gx, gy] = sums_along(d, smooth, a.step, row, e);
    const auto magnitude = [&](auto lower_x, auto lower_y) HWY_ATTR {
      const auto x = hn::ConvertTo(real, hn::PromoteTo(hn::ScalableTag<std::int32_t>(), lower_x));
      const auto y = hn::ConvertTo(real, hn::PromoteTo(hn::ScalableTag<std::int32_t>(), lower_y));
      return hn::Sqrt(hn::MulAdd(x, x, hn::Mul(y, y)));
    };
    const hn::Half<decltype(d)> half;
    hn::StoreU(magnitude(hn::LowerHalf(half, gx), hn::LowerHalf(half, gy)), real, to + e);
    hn::StoreU(magnitude(hn::UpperHalf(half, gx), hn::UpperHalf(half, gy)), real, to + e + lanes / 2);
  }
}

void DifferenceMagnitudes(const Differences& a, float* const* to) {
  const bool unit_x = a.pair.x.outer == 1, unit_y = a.pair.y.outer == 1;
  unit_x ? differences_down<true>(a) : differences_down<false>(a);
  for (int j = 0; j < a.count; ++j)
    unit_y ? store_real<true>(a, scratch_row(a, j), to[j]) : store_real<false>(a, scratch_row(a, j), to[j]);
}

template <bool unit>
void store_rounded_row(const Differences& a, int j, std::uint8_t* to) {
  const Scratch row = scratch_row(a, j);
  const std::int64_t step = a.step;
  const hn::ScalableTag<std::int16_t> d16;
  const Smoother<unit, hn::Vec<decltype(d16)>> smooth(d16, a.pair.y);
  store_rounded(a.n, to, [=](auto d, std::int64_t e) HWY_ATTR { return sums_along(d, smooth, step, row, e); });
}

void RoundedDifferenceMagnitudes(const Differences& a, std::uint8_t* to, std::int64_t stride_bytes) {
  a.pair.x.outer == 1 ? differences_down<true>(a) : differences_down<false>(a);
  for (int j = 0; j < a.count; ++j, to += stride_bytes)
    a.pair.y.outer == 1 ? store_rounded_row<true>(a, j, to) : store_rounded_row<false>(a, j, to);
}

void RoundedMagnitudes(const std::int16_t* gx, const std::int16_t* gy, std::int64_t n, std::uint8_t* to) {
  store_rounded(n, to, [&](auto d, std::int64_t e) HWY_ATTR {
    return Sums<hn::Vec<decltype(d)>>{hn::LoadU(d, gx + e), hn::LoadU(d, gy + e)};
  });
}

#else  // plain loops

float plain_magnitude(int gx, int gy) {
  return std::sqrt(static_cast<float>(gx * gx + gy * gy));  // both squares are exact
}

std::uint8_t plain_rounded(int gx, int gy) {
  return static_cast<std::uint8_t>(std::min(std::nearbyint(plain_magnitude(gx, gy)), 255.0f));
}

template <class Store>
void plain_differences(const Differences& a, const Store& store) {
  const auto smooth = [](DifferencePair::Smoothing w, int first, int middle, int last) {
    return w.outer * (first + last) + w.middle * middle;
  };
  for (int j = 0; j < a.count; ++j)
    for (std::int64_t e = 0; e < a.n; ++e) {
      const auto x = [&](int i, int k) { return static_cast<int>(a.inputs[j + i][e + k * a.step]); };
      const auto column = [&](int k) { return smooth(a.pair.x, x(0, k), x(1, k), x(2, k)); };
      const auto row = [&](int i) { return smooth(a.pair.y, x(i, 0), x(i, 1), x(i, 2)); };
      store(j, e, column(2) - column(0), row(2) - row(0));
    }
}

void DifferenceMagnitudes(const Differences& a, float* const* to) {
  plain_differences(a, [&](int j, std::int64_t e, int gx, int gy) { to[j][e] = plain_magnitude(gx, gy); });
}

void RoundedDifferenceMagnitudes(const Differences& a, std::uint8_t* to, std::int64_t stride_bytes) {
  plain_differences(a,
                    [&](int j, std::int64_t e, int gx, int gy) { to[j * stride_bytes + e] = plain_rounded(gx, gy); });
}

void RoundedMagnitudes(const std::int16_t* gx, const std::int16_t* gy, std::int64_t n, std::uint8_t* to) {
  for (std::int64_t e = 0; e < n; ++e) to[e] = plain_rounded(gx[e], gy[e]);
}

#endif

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(MagnitudesF32);
HWY_EXPORT(MagnitudesF64);
HWY_EXPORT(DifferenceMagnitudes);
HWY_EXPORT(RoundedDifferenceMagnitudes);
HWY_EXPORT(RoundedMagnitudes);

void magnitudes(const float* x, const float* y, std::int64_t n, bool exact, float* to) {
  HWY_DYNAMIC_DISPATCH(MagnitudesF32)(x, y, n, exact, to);
}
void magnitudes(const double* x, const double* y, std::int64_t n, bool exact, double* to) {
  HWY_DYNAMIC_DISPATCH(MagnitudesF64)(x, y, n, exact, to);
}

void difference_magnitudes(const Differences& arguments, float* const* to) {
  HWY_DYNAMIC_DISPATCH(DifferenceMagnitudes)(arguments, to);
}
void rounded_difference_magnitudes(const Differences& arguments, std::uint8_t* to, std::int64_t stride_bytes) {
  HWY_DYNAMIC_DISPATCH(RoundedDifferenceMagnitudes)(arguments, to, stride_bytes);
}
void rounded_magnitudes(const std::int16_t* gx, const std::int16_t* gy, std::int64_t n, std::uint8_t* to) {
  HWY_DYNAMIC_DISPATCH(RoundedMagnitudes)(gx, gy, n, to);
}

}  // namespace omniconv::kernels
#endif
