// Vectors of stored real numbers: f16 and bf16 widened and rounded. For inclusion by each target of a file of vector
// code, after Highway.
#if defined(OMNICONV_STORED_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_STORED_INL_H
#undef OMNICONV_STORED_INL_H
#else
#define OMNICONV_STORED_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/convert.h"
#include "vector/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A vector of sums' elements from as many stored ones.
template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_stored(D d, const std::byte* from) {
  using Real = hn::TFromD<D>;
  if constexpr ((type == DataType::f32 && sizeof(Real) == 4) || type == DataType::f64) {
    return hn::LoadU(d, reinterpret_cast<const Real*>(from));
  } else if constexpr (type == DataType::bf16) {
    const hn::RebindToUnsigned<D> bits;
    const hn::Rebind<std::uint16_t, D> stored;
    const auto halves = hn::LoadU(stored, reinterpret_cast<const std::uint16_t*>(from));
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, halves)));
#if HWY_NATIVE_FMA && HWY_ARCH_X86  // and F16C
  } else if constexpr (type == DataType::f16) {
    const hn::Rebind<hwy::float16_t, D> stored;
    return hn::PromoteTo(d, hn::LoadU(stored, reinterpret_cast<const hwy::float16_t*>(from)));
#endif
  } else {
    HWY_ALIGN Real values[hn::MaxLanes(d)];
    for (std::size_t i = 0; i < hn::Lanes(d); ++i)
      values[i] = static_cast<Real>(load_element(type, from + static_cast<std::int64_t>(i) * size_of(type)));
    return hn::Load(d, values);
  }
}

template <DataType type, class D>
HWY_INLINE void store_stored(D d, hn::Vec<D> value, std::byte* to) {
  using Real = hn::TFromD<D>;
  if constexpr ((type == DataType::f32 && sizeof(Real) == 4) || type == DataType::f64) {
    hn::StoreU(value, d, reinterpret_cast<Real*>(to));
#if HWY_NATIVE_FMA && HWY_ARCH_X86
  } else if constexpr (type == DataType::f16) {
    const hn::Rebind<hwy::float16_t, D> stored;
    hn::StoreU(hn::DemoteTo(stored, value), stored, reinterpret_cast<hwy::float16_t*>(to));
#endif
#if HWY_TARGET != HWY_SCALAR
  } else if constexpr (type == DataType::bf16) {  // to_bfloat16 of core/half.h
    const hn::RebindToUnsigned<D> wide;
    const hn::Rebind<std::uint16_t, D> stored;
    const auto bits = hn::BitCast(wide, value), high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(wide, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(wide, 0x7FFF))));
    const auto is_nan = hn::RebindMask(wide, hn::IsNaN(value));
    const auto halves = hn::IfThenElse(is_nan, hn::Or(high, hn::Set(wide, 0x40)), rounded);
    hn::StoreU(hn::TruncateTo(stored, halves), stored, reinterpret_cast<std::uint16_t*>(to));
#endif
  } else {
    HWY_ALIGN Real values[hn::MaxLanes(d)];
    hn::Store(value, d, values);
    for (std::size_t i = 0; i < hn::Lanes(d); ++i)
      store_element(type, values[i], to + static_cast<std::int64_t>(i) * size_of(type));
  }
}

// Stored as they are computed with.
template <DataType type, typename Real>
constexpr bool is_kept = (type == DataType::f32 && sizeof(Real) == 4) || (type == DataType::f64 && sizeof(Real) == 8);

// The first `count` of them, where there are no more; the others are zero.
template <DataType type, class D>
HWY_INLINE hn::Vec<D> load_stored(D d, const std::byte* from, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return load_stored<type>(d, from);
  using Real = hn::TFromD<D>;
  if constexpr (is_kept<type, Real>) return load_first(d, reinterpret_cast<const Real*>(from), count);
  alignas(64) std::byte stored[hn::MaxLanes(d) * 8]{};
  std::memcpy(stored, from, static_cast<std::size_t>(count * size_of(type)));
  return load_stored<type>(d, stored);
}

template <DataType type, class D>
HWY_INLINE void store_stored(D d, hn::Vec<D> value, std::byte* to, std::int64_t count) {
  if (count >= static_cast<std::int64_t>(hn::Lanes(d))) return store_stored<type>(d, value, to);
  using Real = hn::TFromD<D>;
  if constexpr (is_kept<type, Real>) return store_first(d, value, reinterpret_cast<Real*>(to), count);
  alignas(64) std::byte stored[hn::MaxLanes(d) * 8];
  store_stored<type>(d, value, stored);
  std::memcpy(to, stored, static_cast<std::size_t>(count * size_of(type)));
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
