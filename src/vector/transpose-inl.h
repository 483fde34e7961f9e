// Squares of a vector's lanes, turned in registers. For inclusion by each target of a file of vector code, after
// Highway.
#if defined(OMNICONV_TRANSPOSE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_TRANSPOSE_INL_H
#undef OMNICONV_TRANSPOSE_INL_H
#else
#define OMNICONV_TRANSPOSE_INL_H
#endif

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// For loops over vectors that stay in registers.
#undef OMNICONV_UNROLL
#define OMNICONV_UNROLL _Pragma("GCC unroll 16")

// Vectors [i] and [i + count / 2] become [2 * i] and [2 * i + 1], lane by lane within blocks of 16 bytes.
template <std::size_t count, class D, class V = hn::Vec<D>>
HWY_INLINE void interleave([[maybe_unused]] D d, [[maybe_unused]] V* vectors) {
#if HWY_TARGET != HWY_SCALAR
  V other[count];
  OMNICONV_UNROLL for (std::size_t i = 0; i < count / 2; ++i) {
    other[2 * i] = hn::InterleaveLower(d, vectors[i], vectors[i + count / 2]);
    other[2 * i + 1] = hn::InterleaveUpper(d, vectors[i], vectors[i + count / 2]);
  }
  OMNICONV_UNROLL for (std::size_t i = 0; i < count; ++i) {
    vectors[i] = other[i];
  }
#endif
}

// Vector i's lane j becomes vector j's lane i: first in blocks of 16 bytes, then the blocks.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose(D d, V* vectors) {
  constexpr std::size_t lanes = hn::MaxLanes(D()), of_block = HWY_MIN(lanes, 16 / sizeof(hn::TFromD<D>)),
                        blocks = lanes / of_block;
  OMNICONV_UNROLL for (std::size_t first = 0; first < lanes; first += of_block) {
    OMNICONV_UNROLL for (std::size_t round = of_block; round > 1; round /= 2) {
      interleave<of_block>(d, vectors + first);
    }
  }
#if HWY_TARGET <= HWY_AVX2  // of more than a block
  OMNICONV_UNROLL for (std::size_t i = 0; i < of_block; ++i) {
    if constexpr (blocks == 2) {
      const V low = vectors[i], high = vectors[i + of_block];
      vectors[i] = hn::ConcatLowerLower(d, high, low);
      vectors[i + of_block] = hn::ConcatUpperUpper(d, high, low);
    } else if constexpr (blocks == 4) {
      V* const v = vectors + i;
      const V a = hn::ConcatLowerLower(d, v[2 * of_block], v[0]),
              b = hn::ConcatLowerLower(d, v[3 * of_block], v[of_block]),
              c = hn::ConcatUpperUpper(d, v[2 * of_block], v[0]),
              e = hn::ConcatUpperUpper(d, v[3 * of_block], v[of_block]);
      v[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(b), a);
      v[of_block] = hn::OddEvenBlocks(b, hn::SwapAdjacentBlocks(a));
      v[2 * of_block] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), c);
      v[3 * of_block] = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(c));
    } else {
      static_assert(blocks == 1);
    }
  }
#else
  static_assert(blocks == 1);
#endif
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
