// Elements side by side in a vector, and counters of Philox too.
#include "operations/dropout/direct/elements.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "operations/dropout/direct/elements.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "vector/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::ScalableTag<std::uint32_t>;

#if HWY_TARGET != HWY_SCALAR
using WordVector = hn::Vec<Words>;

// The upper and the lower halves of products of 32 bits.
HWY_INLINE void multiply(Words d, WordVector a, WordVector multiplier, WordVector& high, WordVector& low) {
  const hn::Repartition<std::uint64_t, Words> wide;
  const auto even = hn::MulEven(a, multiplier);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), multiplier);
  high = hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even)));
  low = hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even));
}

HWY_INLINE void philox_round(Words d, PhiloxKey key, WordVector& c0, WordVector& c1, WordVector& c2, WordVector& c3) {
  auto high_0 = c0, low_0 = c0, high_1 = c2, low_1 = c2;
  multiply(d, c0, hn::Set(d, 0xD2511F53u), high_0, low_0);
  multiply(d, c2, hn::Set(d, 0xCD9E8D57u), high_1, low_1);
  c0 = hn::Xor(hn::Xor(high_1, c1), hn::Set(d, key[0]));
  c2 = hn::Xor(hn::Xor(high_0, c3), hn::Set(d, key[1]));
  c1 = low_1, c3 = low_0;
}
#endif

// The words of so many blocks, from one on that is a multiple of that: of core/philox.h. Two vectors of blocks are
// under way together, since each round waits for the products of the one before.
HWY_INLINE std::int64_t blocks_at_once(Words d) {
  return 2 * static_cast<std::int64_t>(hn::Lanes(d));
}
HWY_INLINE void next_words(Words d, std::uint64_t block, std::uint32_t stream, std::uint32_t use, PhiloxKey key,
                           std::uint32_t* HWY_RESTRICT words) {
  const auto low = static_cast<std::uint32_t>(block), high = static_cast<std::uint32_t>(block >> 32);
#if HWY_TARGET == HWY_SCALAR
  for (std::uint32_t i = 0; i < blocks_at_once(d); ++i) {
    const PhiloxWords made = philox({low + i, high, stream, use}, key);
    std::copy(made.begin(), made.end(), words + 4 * i);
  }
#else
  const auto lanes = static_cast<std::uint32_t>(hn::Lanes(d));
  auto a0 = hn::Iota(d, low), a1 = hn::Set(d, high), a2 = hn::Set(d, stream), a3 = hn::Set(d, use);
  auto b0 = hn::Iota(d, low + lanes), b1 = a1, b2 = a2, b3 = a3;
  for (int round = 0; round < 10; ++round) {
    philox_round(d, key, a0, a1, a2, a3);
    philox_round(d, key, b0, b1, b2, b3);
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  hn::StoreInterleaved4(a0, a1, a2, a3, d, words);
  hn::StoreInterleaved4(b0, b1, b2, b3, d, words + 4 * lanes);
#endif
}

template <DataType type>
HWY_INLINE void drop_as(const operations::DropoutNumbers& numbers, std::uint32_t step,
                        const operations::DropoutPiece& piece) {
  using Real = std::conditional_t<type == DataType::f64, double, float>;
  const Words of_words;
  const hn::ScalableTag<Real> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d)), size = size_of(type),
             at_once = 4 * blocks_at_once(of_words);
  const auto scale = hn::Set(d, static_cast<Real>(numbers.scale));
  const auto threshold = hn::Set(bits, numbers.threshold);
  const std::uint32_t use = static_cast<std::uint32_t>(PhiloxUse::dropout) | step << 4;
  const PhiloxKey key = philox_key(numbers.seed);
  HWY_ALIGN std::uint32_t words[8 * hn::MaxLanes(of_words)];
  for (std::int64_t e = 0; e < piece.elements; e += at_once) {
    next_words(of_words, static_cast<std::uint64_t>(piece.first + e) / 4, numbers.stream, use, key, words);
    for (std::int64_t i = 0; i < at_once && e + i < piece.elements; i += lanes) {
      const std::int64_t left = piece.elements - e - i, at = (e + i) * size;
      hn::Vec<decltype(bits)> word;
      if constexpr (type == DataType::f64) {
        const hn::Rebind<std::uint32_t, decltype(d)> halves;
        word = hn::PromoteTo(bits, hn::LoadU(halves, words + i));
      } else {
        word = hn::Load(bits, words + i);
      }
      const auto falls = hn::RebindMask(d, hn::Lt(word, threshold));
      const auto made = hn::Mul(load_stored<type>(d, piece.x + at, left), scale);
      store_stored<type>(d, hn::IfThenZeroElse(falls, made), piece.y + at, left);
    }
  }
}

void drop_any(const DropoutProblem& problem, const operations::DropoutNumbers& numbers, std::uint32_t step,
              const operations::DropoutPiece& piece) {
  switch (problem.type) {
    case DataType::f64: return drop_as<DataType::f64>(numbers, step, piece);
    case DataType::f16: return drop_as<DataType::f16>(numbers, step, piece);
    case DataType::bf16: return drop_as<DataType::bf16>(numbers, step, piece);
    default: return drop_as<DataType::f32>(numbers, step, piece);
  }
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace omniconv::kernels {

HWY_EXPORT(drop_any);

void drop(const DropoutProblem& problem, const operations::DropoutNumbers& numbers, std::uint32_t step,
          const operations::DropoutPiece& piece) {
  HWY_DYNAMIC_DISPATCH(drop_any)(problem, numbers, step, piece);
}

}  // namespace omniconv::kernels
#endif
