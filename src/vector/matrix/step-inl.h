// A step of a product's tile, whose sums stay in registers. For inclusion by each target of a file of vector code,
// after Highway.
#if defined(OMNICONV_STEP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_STEP_INL_H
#undef OMNICONV_STEP_INL_H
#else
#define OMNICONV_STEP_INL_H
#endif

#include "vector/registers-inl.h"

// For loops over registers: their indices must be constants, or the compiler keeps the registers in memory.
#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 16")

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {

// Sums of a tile are most_rows x vectors registers: 28 of AVX-512's 32, 12 of AVX2's 16. One vector of the rest holds
// an element of a, the others a step of b.
constexpr int vectors = 2;
constexpr int most_rows = HWY_TARGET <= HWY_AVX3 ? 14 : HWY_TARGET == HWY_SCALAR ? 4 : 6;

// sums[i][v] += a[i] * b[v], of vectors v that begin at a multiple of their size.
template <int rows, int V, class D, typename Real = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void add_step(D d, const Real* HWY_RESTRICT a, const Real* HWY_RESTRICT b,
                         hwy::HWY_NAMESPACE::Vec<D> (&sums)[rows][V]) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> column[V];
  OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
    column[v] = in_register(hn::Load(d, b + v * lanes));
  }
  OMNICONV_UNROLL for (int i = 0; i < rows; ++i) {
    const auto element = in_register(hn::Set(d, a[i]));
    OMNICONV_UNROLL for (int v = 0; v < V; ++v) {
      sums[i][v] = hn::MulAdd(element, column[v], sums[i][v]);
    }
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
