// Dot products of pairs of bf16 numbers, which some processors add to sums in f32 as fast as one product.
#pragma once

#include <cstdint>

namespace omniconv::kernels {

// Two terms of a sum that follow each other, the first in `low`; zero where there is no second.
struct BfloatPair {
  std::uint16_t low, high;
};
inline constexpr std::int64_t pair_terms = 2;

// to[i] = low[i * step] and high[i * step]; lines may be short, so that this is no call.
inline void pair_lines(const std::uint16_t* low, const std::uint16_t* high, std::int64_t step, std::int64_t count,
                       BfloatPair* to) {
  if (step == 1)
    for (std::int64_t i = 0; i < count; ++i) to[i] = {low[i], high[i]};
  else
    for (std::int64_t i = 0; i < count; ++i) to[i] = {low[i * step], high[i * step]};
}
static_assert(sizeof(BfloatPair) == sizeof(float));  // panels of pairs take the room of those of sums' elements

// What sums of products of elements are kept in.
template <typename Element>
struct SumOf {
  using Type = Element;
};
template <>
struct SumOf<BfloatPair> {
  using Type = float;
};

// The processor and the instruction set in use have such products (AVX-512 BF16) as fast as multiply-adds: AMD's do; on
// a Xeon with AMX one takes as long as four multiply-adds. They are the sum plus the product of the second terms,
// rounded, plus that of the first, rounded. Numbers below the normal range count as zeros, also beside infinities.
bool has_pair_products();

}  // namespace omniconv::kernels
