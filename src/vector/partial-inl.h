// The first lanes of a vector, or some in its middle, where nothing else may be touched. For inclusion by each target
// of a file of vector code, after Highway.
#if defined(OMNICONV_PARTIAL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_PARTIAL_INL_H
#undef OMNICONV_PARTIAL_INL_H
#else
#define OMNICONV_PARTIAL_INL_H
#endif

#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes [first, last) of from[0 .. lanes), zero elsewhere.
template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_between(D d, const Real* from, std::int64_t first, std::int64_t last) {
#if HWY_TARGET <= HWY_AVX2
  const auto before = hn::FirstN(d, static_cast<std::size_t>(first)),
             until = hn::FirstN(d, static_cast<std::size_t>(last));
  return hn::MaskedLoad(hn::AndNot(before, until), d, from);
#else
  HWY_ALIGN Real values[hn::MaxLanes(d)] = {};
  for (std::int64_t i = first; i < last; ++i) values[i] = from[i];
  return hn::Load(d, values);
#endif
}

template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> load_first(D d, const Real* from, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<std::size_t>(count)), d, from);
#else
  return load_between(d, from, 0, count);
#endif
}

template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE void store_between(D d, hn::Vec<D> value, Real* to, std::int64_t first, std::int64_t last) {
#if HWY_TARGET <= HWY_AVX2
  const auto before = hn::FirstN(d, static_cast<std::size_t>(first)),
             until = hn::FirstN(d, static_cast<std::size_t>(last));
  hn::BlendedStore(value, hn::AndNot(before, until), d, to);
#else
  HWY_ALIGN Real values[hn::MaxLanes(d)];
  hn::Store(value, d, values);
  for (std::int64_t i = first; i < last; ++i) to[i] = values[i];
#endif
}

template <class D, typename Real = hn::TFromD<D>>
HWY_INLINE void store_first(D d, hn::Vec<D> value, Real* to, std::int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  hn::BlendedStore(value, hn::FirstN(d, static_cast<std::size_t>(count)), d, to);
#else
  store_between(d, value, to, 0, count);
#endif
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
