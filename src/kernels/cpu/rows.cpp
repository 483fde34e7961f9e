#include "kernels/cpu/rows.h"

#include <cmath>
#include <cstring>

#include "core/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows.cpp"
#define HWY_DISABLED_TARGETS HWY_SSSE3  // no gain over SSE4 here
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors per output row in registers: with chain_rows rows of sums, 16 of AVX-512's 32 registers, 8 of AVX2's 16.
constexpr int vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

// A vector multiply-add that is the fused one, or that cannot be told from it.
template <bool fused, class V>
HWY_INLINE V multiply_add(V w, V x, V sum) {
  if constexpr (fused)
    return hn::MulAdd(w, x, sum);
  else
    return hn::Add(hn::Mul(w, x), sum);
}

// One input row into the sums of output rows first .. last: for tap column k, weights stand `back` apart per output
// row.
template <int first, int last, bool fused, int V, class D, class Sums, typename Real = hn::TFromD<D>>
HWY_INLINE void add_row(D d, const Real* HWY_RESTRICT input, const Real* HWY_RESTRICT weights, std::int64_t s,
                        std::int64_t step, Sums& sums) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t k = 0; k < s; ++k, input += step) {
    hn::Vec<D> x[V];
    for (int v = 0; v < V; ++v) x[v] = hn::LoadU(d, input + v * lanes);
    for (int j = first; j <= last; ++j) {
      const auto w = hn::Set(d, weights[k - j * s]);
      for (int v = 0; v < V; ++v) sums[j][v] = multiply_add<fused>(w, x[v], sums[j][v]);
    }
  }
}

// All taps for V vectors of every output row. Input row i serves the output rows j with 0 <= i - j < r.
template <bool fused, int V, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void chain_block(D d, const Chain<Real>& a, std::int64_t e) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[chain_rows][V];
  for (int j = 0; j < chain_rows; ++j)
    for (int v = 0; v < V; ++v) sums[j][v] = hn::Zero(d);
  const std::int64_t rows = a.r + a.count - 1;
  for (std::int64_t i = 0; i < rows; ++i) {
    const Real* const input = a.inputs[i] + e;
    const Real* const weights = a.weights + i * a.s;
    const std::int64_t first = i < a.r ? 0 : i - a.r + 1;
    const std::int64_t last = i < a.count ? i : a.count - 1;
    switch (first * chain_rows + last) {
#define OMNICONV_ROWS(FIRST, LAST) \
  case FIRST* chain_rows + LAST: add_row<FIRST, LAST, fused, V>(d, input, weights, a.s, a.step, sums); break
      OMNICONV_ROWS(0, 0);
      OMNICONV_ROWS(0, 1);
      OMNICONV_ROWS(0, 2);
      OMNICONV_ROWS(0, 3);
      OMNICONV_ROWS(1, 1);
      OMNICONV_ROWS(1, 2);
      OMNICONV_ROWS(1, 3);
      OMNICONV_ROWS(2, 2);
      OMNICONV_ROWS(2, 3);
      OMNICONV_ROWS(3, 3);
#undef OMNICONV_ROWS
    }
  }
  for (int j = 0; j < chain_rows; ++j)
    if (j < a.count)
      for (int v = 0; v < V; ++v) hn::StoreU(sums[j][v], d, a.sums[j] + e + v * lanes);
}

template <bool fused, typename Real>
HWY_INLINE void chain_vectors(const Chain<Real>& a) {
  const hn::ScalableTag<Real> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t e = 0;
  for (; e + vectors * lanes <= a.n; e += vectors * lanes) chain_block<fused, vectors>(d, a, e);
  for (; e < a.n; e += lanes) chain_block<fused, 1>(d, a, e);
}

template <typename Real>
void chain_scalar(const Chain<Real>& a) {
  for (int j = 0; j < a.count; ++j)
    for (std::int64_t e = 0; e < a.n; ++e) {
      Real sum = 0;
      for (std::int64_t i = 0; i < a.r; ++i)
        for (std::int64_t k = 0; k < a.s; ++k)
          sum = std::fma(a.weights[i * a.s + k], a.inputs[i + j][e + k * a.step], sum);
      a.sums[j][e] = sum;
    }
}

template <typename Real>
void chain_of(const Chain<Real>& a) {
#if HWY_NATIVE_FMA
  chain_vectors<true>(a);
#else
  if (a.exact)
    chain_vectors<false>(a);
  else
    chain_scalar(a);
#endif
}

void ChainF32(const Chain<float>& a) {
  chain_of(a);
}
void ChainF64(const Chain<double>& a) {
  chain_of(a);
}

template <typename Stored, class Load>
HWY_INLINE void widen_vectors(const std::byte* from, std::int64_t n, float* to, const Load& load) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto* const stored = reinterpret_cast<const Stored*>(from);
  std::int64_t e = 0;
  for (; e + lanes <= n; e += lanes) hn::StoreU(load(d, stored + e), d, to + e);
  for (; e < n; ++e) {
    Stored value;
    std::memcpy(&value, stored + e, sizeof value);
    if constexpr (std::is_same_v<Stored, hwy::float16_t>)
      to[e] = half_to_float(value.bits);
    else
      to[e] = static_cast<float>(value);
  }
}

// Integers narrower than 32 bits by way of 32.
template <typename Stored>
HWY_INLINE void widen_integers(const std::byte* from, std::int64_t n, float* to) {
  widen_vectors<Stored>(from, n, to, [](auto d, const Stored* at) HWY_ATTR {
    const hn::RebindToSigned<decltype(d)> d32;
    const hn::Rebind<Stored, decltype(d)> stored;
    if constexpr (sizeof(Stored) == 4)
      return hn::ConvertTo(d, hn::LoadU(d32, at));
    else
      return hn::ConvertTo(d, hn::PromoteTo(d32, hn::LoadU(stored, at)));
  });
}

void WidenF32(DataType type, const std::byte* from, std::int64_t n, float* to) {
  switch (type) {
    case DataType::u8: return widen_integers<std::uint8_t>(from, n, to);
    case DataType::u16: return widen_integers<std::uint16_t>(from, n, to);
    case DataType::s16: return widen_integers<std::int16_t>(from, n, to);
    case DataType::s32: return widen_integers<std::int32_t>(from, n, to);
    case DataType::f16:
#if HWY_NATIVE_FMA
      return widen_vectors<hwy::float16_t>(from, n, to, [](auto d, const hwy::float16_t* at) HWY_ATTR {
        const hn::Rebind<hwy::float16_t, decltype(d)> stored;
        return hn::PromoteTo(d, hn::LoadU(stored, at));
      });
#else
      break;
#endif
    case DataType::f32: std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float)); return;
    default: break;
  }
  for (std::int64_t e = 0; e < n; ++e) to[e] = static_cast<float>(load_element(type, from + e * size_of(type)));
}

void finish_scalar(const Finish& a, const float* sums, std::int64_t n, std::byte* to) {
  const auto scale = static_cast<float>(a.scale), bias = static_cast<float>(a.bias),
             weight = static_cast<float>(a.weight);
  const std::int64_t size = size_of(a.type);
  for (std::int64_t e = 0; e < n; ++e)
    store_element(a.type, std::fma(scale, a.times_weight ? sums[e] * weight : sums[e], bias), to + e * size);
}

// `store` takes the value as a vector and writes it in the stored type.
template <typename Stored, class Store>
HWY_INLINE void finish_vectors(const Finish& a, const float* sums, std::int64_t n, std::byte* to, const Store& store) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, static_cast<float>(a.scale)), bias = hn::Set(d, static_cast<float>(a.bias));
  const auto weight = hn::Set(d, static_cast<float>(a.weight));
  std::int64_t e = 0;
  for (; e + lanes <= n; e += lanes) {
    auto sum = hn::LoadU(d, sums + e);
    if (a.times_weight) sum = hn::Mul(sum, weight);
    store(d, hn::MulAdd(scale, sum, bias), reinterpret_cast<Stored*>(to) + e);
  }
  finish_scalar(a, sums + e, n - e, to + e * static_cast<std::int64_t>(sizeof(Stored)));
}

// Max returns its second operand when the first is NaN (x86): NaN becomes the lowest value, so it is replaced before.
template <typename Stored>
HWY_INLINE void finish_integers(const Finish& a, const float* sums, std::int64_t n, std::byte* to) {
  finish_vectors<Stored>(a, sums, n, to, [](auto d, auto value, Stored* at) HWY_ATTR {
    const hn::Rebind<Stored, decltype(d)> stored;
    const auto lowest = hn::Set(d, static_cast<float>(std::numeric_limits<Stored>::lowest()));
    const auto highest = hn::Set(d, static_cast<float>(std::numeric_limits<Stored>::max()));
    const auto number = hn::IfThenElseZero(hn::Eq(value, value), value);
    const auto clamped = hn::Min(hn::Max(number, lowest), highest);
    hn::StoreU(hn::DemoteTo(stored, hn::NearestInt(clamped)), stored, at);
  });
}

void FinishF32(const Finish& a, const float* sums, std::int64_t n, std::byte* to) {
#if HWY_NATIVE_FMA
  switch (a.type) {
    case DataType::u8: return finish_integers<std::uint8_t>(a, sums, n, to);
    case DataType::u16: return finish_integers<std::uint16_t>(a, sums, n, to);
    case DataType::s16: return finish_integers<std::int16_t>(a, sums, n, to);
    case DataType::f16:
      return finish_vectors<hwy::float16_t>(a, sums, n, to, [](auto d, auto value, hwy::float16_t* at) HWY_ATTR {
        const hn::Rebind<hwy::float16_t, decltype(d)> stored;
        hn::StoreU(hn::DemoteTo(stored, value), stored, at);
      });
    case DataType::f32:
      return finish_vectors<float>(a, sums, n, to,
                                   [](auto d, auto value, float* at) HWY_ATTR { hn::StoreU(value, d, at); });
    default: break;
  }
#endif
  finish_scalar(a, sums, n, to);
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(ChainF32);
HWY_EXPORT(ChainF64);
HWY_EXPORT(WidenF32);
HWY_EXPORT(FinishF32);

void chain(const Chain<float>& arguments) {
  HWY_DYNAMIC_DISPATCH(ChainF32)(arguments);
}
void chain(const Chain<double>& arguments) {
  HWY_DYNAMIC_DISPATCH(ChainF64)(arguments);
}
void widen(DataType type, const std::byte* from, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenF32)(type, from, n, to);
}
void widen(DataType type, const std::byte* from, std::int64_t n, double* to) {
  for (std::int64_t e = 0; e < n; ++e) to[e] = load_element(type, from + e * size_of(type));
}
void finish(const Finish& arguments, const float* sums, std::int64_t n, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(FinishF32)(arguments, sums, n, to);
}

void finish(const Finish& arguments, const double* sums, std::int64_t n, std::byte* to) {
  const std::int64_t size = size_of(arguments.type);
  const auto scale = static_cast<float>(arguments.scale), bias = static_cast<float>(arguments.bias);
  for (std::int64_t e = 0; e < n; ++e) {
    if (arguments.f32) {
      const auto sum = static_cast<float>(sums[e]);
      const float value = arguments.times_weight ? sum * static_cast<float>(arguments.weight) : sum;
      store_element(arguments.type, std::fma(scale, value, bias), to + e * size);
    } else {
      store_element(arguments.type, std::fma(arguments.scale, sums[e], arguments.bias), to + e * size);
    }
  }
}

}  // namespace omniconv::kernels
#endif
