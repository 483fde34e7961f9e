#include "operations/filter2d/vector/rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/filter2d/vector/rows.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "vector/registers-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// For loops over registers: their indices must be constants, or the compiler keeps the registers in memory.
#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 8")

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

// The cache lines that begin within elements [e, e + n) of the upcoming rows.
HWY_INLINE void prefetch(const Upcoming& upcoming, std::int64_t e, std::int64_t n) {
  if (upcoming.rows == nullptr) return;
  constexpr std::int64_t line = 64;
  const std::int64_t end = (e + n) * upcoming.element_bytes;
  for (std::int64_t b = (e * upcoming.element_bytes + line - 1) / line * line; b < end; b += line) {
    OMNICONV_UNROLL for (int j = 0; j < chain_rows; ++j) {
      hwy::Prefetch(upcoming.rows[j] + b);
    }
  }
}

// One input row into the sums of output rows first .. last: tap column k of output row j has the weight weights[k - j *
// s].
template <int first, int last, bool fused, int V, class D, class Sums, typename Real = hn::TFromD<D>>
HWY_INLINE void add_row(D d, const Real* HWY_RESTRICT input, const Real* HWY_RESTRICT weights, std::int64_t s,
                        std::int64_t step, Sums& sums) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t k = 0; k < s; ++k, input += step) {
    hn::Vec<D> w[last + 1];
    OMNICONV_UNROLL for (int j = first; j <= last; ++j) {
      auto weight = hn::Set(d, weights[k - j * s]);
      if constexpr (V > 1) weight = in_register(weight);
      w[j] = weight;
    }
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      auto x = hn::LoadU(d, input + v * lanes);
      if constexpr (last > first) x = in_register(x);
      OMNICONV_UNROLL for (int j = first; j <= last; ++j) {
        sums[j][v] = multiply_add<fused>(w[j], x, sums[j][v]);
      }
    }
  }
}

template <int first, int last, bool fused, class D, int V, typename Real = hn::TFromD<D>>
HWY_INLINE void add_input_row(D d, const Chain<Real>& a, std::int64_t e, std::int64_t i,
                              hn::Vec<D> (&sums)[chain_rows][V]) {
  add_row<first, last, fused, V>(d, a.inputs[i] + a.offset + e, a.weights + i * a.s, a.s, a.step, sums);
}

// Input row i serves output rows j with 0 <= i - j < r.
template <bool fused, class D, int V, typename Real = hn::TFromD<D>>
HWY_INLINE void add_any_row(D d, const Chain<Real>& a, std::int64_t e, std::int64_t i,
                            hn::Vec<D> (&sums)[chain_rows][V]) {
  const std::int64_t first = i < a.r ? 0 : i - a.r + 1;
  const std::int64_t last = i < a.count ? i : a.count - 1;
  switch (first * chain_rows + last) {
#define OMNICONV_ROWS(FIRST, LAST) \
  case FIRST* chain_rows + LAST: add_input_row<FIRST, LAST, fused>(d, a, e, i, sums); break
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

// All taps for V vectors of every output row, then store(j, sums).
template <bool fused, int V, class D, class Store, typename Real = hn::TFromD<D>>
HWY_INLINE void chain_block(D d, const Chain<Real>& a, std::int64_t e, const Store& store) {
  hn::Vec<D> sums[chain_rows][V];
  OMNICONV_UNROLL for (int j = 0; j < chain_rows; ++j) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[j][v] = hn::Zero(d);
    }
  }
  prefetch(a.upcoming, a.offset + e, V * static_cast<std::int64_t>(hn::Lanes(d)));
  // Full blocks of the kernels that matter without a branch: a switch makes GCC move sums between registers.
  if (a.count == chain_rows && a.r >= chain_rows - 1) {
    add_input_row<0, 0, fused>(d, a, e, 0, sums);
    add_input_row<0, 1, fused>(d, a, e, 1, sums);
    add_input_row<0, 2, fused>(d, a, e, 2, sums);
    if (a.r == chain_rows - 1) add_input_row<1, 3, fused>(d, a, e, 3, sums);
    for (std::int64_t i = 3; i < a.r; ++i) add_input_row<0, 3, fused>(d, a, e, i, sums);
    if (a.r >= chain_rows) add_input_row<1, 3, fused>(d, a, e, a.r, sums);
    add_input_row<2, 3, fused>(d, a, e, a.r + 1, sums);
    add_input_row<3, 3, fused>(d, a, e, a.r + 2, sums);
  } else {
    for (std::int64_t i = 0; i < a.r + a.count - 1; ++i) add_any_row<fused>(d, a, e, i, sums);
  }
  OMNICONV_UNROLL for (int j = 0; j < chain_rows; ++j) {
    if (j < a.count) store(j, sums[j]);
  }
}

// `kernels` rows of `taps` weights each (0: any number) over V vectors of one row; to[j] takes the sums of kernel j.
template <bool fused, int kernels, int taps, int V, class D, typename Real = hn::TFromD<D>>
HWY_INLINE void along_row(D d, const Real* HWY_RESTRICT input, const Real* HWY_RESTRICT weights, std::int64_t s,
                          std::int64_t step, Real* const* to, std::int64_t e) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> sums[kernels][V];
  OMNICONV_UNROLL for (int j = 0; j < kernels; ++j) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[j][v] = hn::Zero(d);
    }
  }
  const auto add = [&](std::int64_t k) HWY_ATTR {
    hn::Vec<D> w[kernels];
    OMNICONV_UNROLL for (int j = 0; j < kernels; ++j) {
      w[j] = hn::Set(d, weights[j * s + k]);
    }
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      auto x = hn::LoadU(d, input + e + k * step + v * lanes);
      if constexpr (kernels > 1) x = in_register(x);
      OMNICONV_UNROLL for (int j = 0; j < kernels; ++j) {
        sums[j][v] = multiply_add<fused>(w[j], x, sums[j][v]);
      }
    }
  };
  if constexpr (taps > 0) {
    OMNICONV_UNROLL for (int k = 0; k < taps; ++k) {
      add(k);
    }
  } else {
    for (std::int64_t k = 0; k < s; ++k) add(k);
  }
  OMNICONV_UNROLL for (int j = 0; j < kernels; ++j) {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      hn::StoreU(sums[j][v], d, to[j] + e + v * lanes);
    }
  }
}

// As many sums at a time as a multiply-add's result needs others before it is used: twice the vectors of a block.
template <bool fused, int kernels, int taps, typename Real>
HWY_INLINE void along_whole_row(const Chain<Real>& a, const Real* input, Real* const* to) {
  const hn::ScalableTag<Real> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr int wide = 2 * vectors / kernels;
  std::int64_t e = 0;
  for (; e + wide * lanes <= a.n; e += wide * lanes)
    along_row<fused, kernels, taps, wide>(d, input, a.weights, a.s, a.step, to, e);
  for (; e < a.n; e += lanes) along_row<fused, kernels, taps, 1>(d, input, a.weights, a.s, a.step, to, e);
}

template <bool fused, int taps, typename Real>
HWY_INLINE void along_rows(const Chain<Real>& a, Real* const* sums) {
  for (int j = 0; j < a.count; ++j) along_whole_row<fused, 1, taps>(a, a.inputs[j] + a.offset, sums + j);
}

template <bool fused, typename Real>
HWY_INLINE void along_rows_of(const Chain<Real>& a, Real* const* sums) {
  switch (a.s) {
    case 3: return along_rows<fused, 3>(a, sums);
    case 5: return along_rows<fused, 5>(a, sums);
    case 7: return along_rows<fused, 7>(a, sums);
    default: return along_rows<fused, 0>(a, sums);
  }
}

template <bool fused, typename Real>
HWY_INLINE void chain_vectors(const Chain<Real>& a, Real* const* sums) {
  if (a.r == 1) return along_rows_of<fused>(a, sums);
  const hn::ScalableTag<Real> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  using VecF = decltype(hn::Zero(d));
  std::int64_t e = 0;
  const auto store = [&]<int V>(int j, const VecF(&row)[V]) HWY_ATTR {
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      hn::StoreU(row[v], d, sums[j] + e + v * lanes);
    }
  };
  for (; e + vectors * lanes <= a.n; e += vectors * lanes) chain_block<fused, vectors>(d, a, e, store);
  for (; e < a.n; e += lanes) chain_block<fused, 1>(d, a, e, store);
}

template <typename Real>
void chain_scalar(const Chain<Real>& a, Real* const* sums) {
  for (int j = 0; j < a.count; ++j)
    for (std::int64_t e = 0; e < a.n; ++e) {
      Real sum = 0;
      for (std::int64_t i = 0; i < a.r; ++i)
        for (std::int64_t k = 0; k < a.s; ++k)
          sum = std::fma(a.weights[i * a.s + k], a.inputs[i + j][a.offset + e + k * a.step], sum);
      sums[j][e] = sum;
    }
}

template <typename Real>
void chain_of(const Chain<Real>& a, Real* const* sums) {
#if HWY_NATIVE_FMA
  chain_vectors<true>(a, sums);
#else
  if (a.exact)
    chain_vectors<false>(a, sums);
  else
    chain_scalar(a, sums);
#endif
}

template <typename Real>
void two_chains_of(const Chain<Real>& a, Real* const* sums) {
#if HWY_NATIVE_FMA
  along_whole_row<true, 2, 0>(a, a.inputs[0] + a.offset, sums);
#else
  Chain<Real> one = a;
  chain_of(one, sums);
  one.weights += a.s;
  chain_of(one, sums + 1);
#endif
}

void ChainF32(const Chain<float>& a, float* const* sums) {
  chain_of(a, sums);
}
void ChainF64(const Chain<double>& a, double* const* sums) {
  chain_of(a, sums);
}
void TwoChainsF32(const Chain<float>& a, float* const* sums) {
  two_chains_of(a, sums);
}
void TwoChainsF64(const Chain<double>& a, double* const* sums) {
  two_chains_of(a, sums);
}

void finish_scalar(const Finish& a, const float* sums, std::int64_t n, std::byte* to) {
  const auto scale = static_cast<float>(a.scale), bias = static_cast<float>(a.bias),
             weight = static_cast<float>(a.weight);
  const std::int64_t size = size_of(a.type);
  for (std::int64_t e = 0; e < n; ++e)
    store_element(a.type, std::fma(scale, a.times_weight ? sums[e] * weight : sums[e], bias), to + e * size);
}

// Integers: NaN becomes 0; what is clamped to the ends before rounding is what would be saturated after.
template <typename Stored, class D, class V>
HWY_INLINE void store_integers(D d, V value, std::byte* to) {
  const hn::Rebind<Stored, D> stored;
  const auto lowest = hn::Set(d, static_cast<float>(std::numeric_limits<Stored>::lowest()));
  const auto highest = hn::Set(d, static_cast<float>(std::numeric_limits<Stored>::max()));
  // x86 returns the second operand when the first is NaN: for unsigned types that is the wanted 0 already.
  constexpr bool max_replaces_nan = HWY_ARCH_X86 && std::is_unsigned_v<Stored>;
  const auto number = max_replaces_nan ? value : hn::IfThenElseZero(hn::Eq(value, value), value);
  const auto clamped = hn::Min(hn::Max(number, lowest), highest);
  // At 2^23 the units of fp32 are integers: the addition rounds to nearest even, and leaves them in the low bits.
  const auto shifted = hn::Add(clamped, hn::Set(d, 0x1.8p23f));
  const hn::RebindToUnsigned<D> bits;
  const hn::Rebind<std::make_unsigned_t<Stored>, D> low_bits;
  const auto rounded = hn::TruncateTo(low_bits, hn::BitCast(bits, shifted));
  hn::StoreU(hn::BitCast(stored, rounded), stored, reinterpret_cast<Stored*>(to));
}

template <DataType type, bool stream, class D, class V>
HWY_INLINE void store_vector(D d, V value, std::byte* to) {
  if constexpr (type == DataType::u8)
    store_integers<std::uint8_t>(d, value, to);
  else if constexpr (type == DataType::u16)
    store_integers<std::uint16_t>(d, value, to);
  else if constexpr (type == DataType::s16)
    store_integers<std::int16_t>(d, value, to);
  else if constexpr (type == DataType::f16) {
    const hn::Rebind<hwy::float16_t, D> stored;
    hn::StoreU(hn::DemoteTo(stored, value), stored, reinterpret_cast<hwy::float16_t*>(to));
  } else if constexpr (stream)
    hn::Stream(value, d, reinterpret_cast<float*>(to));
  else
    hn::StoreU(value, d, reinterpret_cast<float*>(to));
}

#if HWY_TARGET <= HWY_AVX3
// Four vectors of values as 64 bytes, with one permutation and one store: Highway has no ordered demotion of four. NaN
// passes Min as its second operand and converts, as what is below the range does, to a number that saturates to 0.
template <class D, class V>
HWY_INLINE void store_bytes(D d, const V (&values)[4], std::byte* to) {
  const auto highest = hn::Set(d, 255.0f);
  const auto integers = [&](V value) HWY_ATTR { return _mm512_cvtps_epi32(hn::Min(highest, value).raw); };
  const __m512i low = _mm512_packs_epi32(integers(values[0]), integers(values[1]));
  const __m512i high = _mm512_packs_epi32(integers(values[2]), integers(values[3]));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
}
#endif

template <DataType type, bool stream, class D, class V, int count>
HWY_INLINE void store_row(D d, const V (&values)[count], std::byte* to) {
#if HWY_TARGET <= HWY_AVX3
  if constexpr (type == DataType::u8 && count == 4) return store_bytes(d, values, to);
#endif
  constexpr std::int64_t size = type == DataType::u8 ? 1 : type == DataType::f32 ? 4 : 2;
  OMNICONV_UNROLL for (int v = 0; v < count; ++v) {
    store_vector<type, stream>(d, values[v], to + v * static_cast<std::int64_t>(hn::Lanes(d)) * size);
  }
}

// The chain with its sums finished in registers.
template <DataType type, bool stream, bool weighted>
void chain_into(const Chain<float>& a, const Finish& finish, float* const* sums, std::byte* to,
                std::int64_t stride_bytes) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t size = type == DataType::u8 ? 1 : type == DataType::f32 ? 4 : 2;
  const auto scale = hn::Set(d, static_cast<float>(finish.scale)), bias = hn::Set(d, static_cast<float>(finish.bias));
  const auto weight = hn::Set(d, static_cast<float>(finish.weight));
  using VecF = decltype(hn::Zero(d));
  std::int64_t e = 0;
  const auto store = [&]<int V>(int j, const VecF(&row)[V]) HWY_ATTR {
    VecF values[V];
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      values[v] = hn::MulAdd(scale, weighted ? hn::Mul(row[v], weight) : row[v], bias);
    }
    store_row<type, stream>(d, values, to + j * stride_bytes + e * size);
  };
  for (; e + vectors * lanes <= a.n; e += vectors * lanes) chain_block<true, vectors>(d, a, e, store);
  for (; e + lanes <= a.n; e += lanes) chain_block<true, 1>(d, a, e, store);
  if (e == a.n) return;
  chain_block<true, 1>(d, a, e, [&](int j, const VecF(&row)[1]) HWY_ATTR { hn::StoreU(row[0], d, sums[j]); });
  for (int j = 0; j < a.count; ++j) finish_scalar(finish, sums[j], a.n - e, to + j * stride_bytes + e * size);
}

#if HWY_NATIVE_FMA
// False where rows are finished one element at a time.
template <bool weighted>
bool chain_into_rows(const Chain<float>& a, const Finish& finish, float* const* sums, std::byte* to,
                     std::int64_t stride_bytes) {
  const auto into = [&]<DataType type, bool stream>() {
    chain_into<type, stream, weighted>(a, finish, sums, to, stride_bytes);
    return true;
  };
  switch (finish.type) {
    case DataType::u8: return into.template operator()<DataType::u8, false>();
    case DataType::u16: return into.template operator()<DataType::u16, false>();
    case DataType::s16: return into.template operator()<DataType::s16, false>();
    case DataType::f16: return into.template operator()<DataType::f16, false>();
    case DataType::f32:
      if (finish.stream) return into.template operator()<DataType::f32, true>();
      return into.template operator()<DataType::f32, false>();
    default: return false;
  }
}
#endif

void ChainAndFinishF32(const Chain<float>& a, const Finish& finish, float* const* sums, std::byte* to,
                       std::int64_t stride_bytes) {
#if HWY_NATIVE_FMA
  if (finish.times_weight ? chain_into_rows<true>(a, finish, sums, to, stride_bytes)
                          : chain_into_rows<false>(a, finish, sums, to, stride_bytes))
    return;
#endif
  chain_of(a, sums);
  for (int j = 0; j < a.count; ++j) finish_scalar(finish, sums[j], a.n, to + j * stride_bytes);
}

template <DataType type, bool stream = false>
void finish_into(const Finish& finish, const float* sums, std::int64_t n, std::byte* to) {
  const hn::ScalableTag<float> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  constexpr std::int64_t size = type == DataType::u8 ? 1 : type == DataType::f32 ? 4 : 2;
  const auto scale = hn::Set(d, static_cast<float>(finish.scale)), bias = hn::Set(d, static_cast<float>(finish.bias));
  const auto weight = hn::Set(d, finish.times_weight ? static_cast<float>(finish.weight) : 1.0f);
  const auto value = [&](std::int64_t e)
                         HWY_ATTR { return hn::MulAdd(scale, hn::Mul(hn::LoadU(d, sums + e), weight), bias); };
  std::int64_t e = 0;
  for (; e + 4 * lanes <= n; e += 4 * lanes) {
    const hn::Vec<decltype(d)> values[4] = {value(e), value(e + lanes), value(e + 2 * lanes), value(e + 3 * lanes)};
    store_row<type, stream>(d, values, to + e * size);
  }
  for (; e + lanes <= n; e += lanes) store_vector<type, stream>(d, value(e), to + e * size);
  finish_scalar(finish, sums + e, n - e, to + e * size);
}

void FinishF32(const Finish& a, const float* sums, std::int64_t n, std::byte* to) {
#if HWY_NATIVE_FMA
  switch (a.type) {
    case DataType::u8: return finish_into<DataType::u8>(a, sums, n, to);
    case DataType::u16: return finish_into<DataType::u16>(a, sums, n, to);
    case DataType::s16: return finish_into<DataType::s16>(a, sums, n, to);
    case DataType::f16: return finish_into<DataType::f16>(a, sums, n, to);
    case DataType::f32:
      if (a.stream) return finish_into<DataType::f32, true>(a, sums, n, to);
      return finish_into<DataType::f32>(a, sums, n, to);
    default: break;
  }
#endif
  finish_scalar(a, sums, n, to);
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

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(ChainF32);
HWY_EXPORT(ChainF64);
HWY_EXPORT(TwoChainsF32);
HWY_EXPORT(TwoChainsF64);
HWY_EXPORT(ChainAndFinishF32);
HWY_EXPORT(FinishF32);
HWY_EXPORT(WidenF32);

void chain(const Chain<float>& arguments, float* const* sums) {
  HWY_DYNAMIC_DISPATCH(ChainF32)(arguments, sums);
}
void chain(const Chain<double>& arguments, double* const* sums) {
  HWY_DYNAMIC_DISPATCH(ChainF64)(arguments, sums);
}

void two_chains(const Chain<float>& arguments, float* const* sums) {
  HWY_DYNAMIC_DISPATCH(TwoChainsF32)(arguments, sums);
}
void two_chains(const Chain<double>& arguments, double* const* sums) {
  HWY_DYNAMIC_DISPATCH(TwoChainsF64)(arguments, sums);
}

void chain_and_finish(const Chain<float>& arguments, const Finish& finish, float* const* sums, std::byte* to,
                      std::int64_t stride_bytes) {
  HWY_DYNAMIC_DISPATCH(ChainAndFinishF32)(arguments, finish, sums, to, stride_bytes);
}

void chain_and_finish(const Chain<double>& arguments, const Finish& finish, double* const* sums, std::byte* to,
                      std::int64_t stride_bytes) {
  chain(arguments, sums);
  for (int j = 0; j < arguments.count; ++j) kernels::finish(finish, sums[j], arguments.n, to + j * stride_bytes);
}

void finish(const Finish& finish, const float* sums, std::int64_t n, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(FinishF32)(finish, sums, n, to);
}

void finish(const Finish& a, const double* sums, std::int64_t n, std::byte* to) {
  const std::int64_t size = size_of(a.type);
  const auto scale = static_cast<float>(a.scale), bias = static_cast<float>(a.bias);
  for (std::int64_t e = 0; e < n; ++e) {
    if (a.f32) {
      const auto rounded = static_cast<float>(sums[e]);
      const float value = a.times_weight ? rounded * static_cast<float>(a.weight) : rounded;
      store_element(a.type, std::fma(scale, value, bias), to + e * size);
    } else {
      store_element(a.type, std::fma(a.scale, sums[e], a.bias), to + e * size);
    }
  }
}

void widen(DataType type, const std::byte* from, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(WidenF32)(type, from, n, to);
}
void widen(DataType type, const std::byte* from, std::int64_t n, double* to) {
  if (type == DataType::f64) return void(std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(double)));
  for (std::int64_t e = 0; e < n; ++e) to[e] = load_element(type, from + e * size_of(type));
}

}  // namespace omniconv::kernels
#endif
