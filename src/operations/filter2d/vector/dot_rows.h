// Chains over bytes as integer dot products: four taps of a kernel row in one instruction (AVX-512 VNNI). For weights
// that are integers times a power of two, where no sum needs rounding, the bits are those of the chain of fused
// multiply-adds (docs/arithmetic.md, rule 5).
#pragma once

#include <vector>

#include "operations/filter2d/vector/rows.h"

namespace omniconv::kernels {

// Whether this processor has the instructions.
bool has_byte_dots();

// Taps that one dot product takes from a row.
inline constexpr std::int64_t dot_taps = 4;
// Interleaved channels at most: the taps of a dot product lie within one vector.
inline constexpr std::int64_t most_dot_channels = 16;

// As the general Chain, with taps in groups of dot_taps along the row: group g of row i is the dword i * s + g of each
// of the weights' bytes. Sums are those of low weights + 256 * high weights, if there are high ones.
template <>
struct Chain<std::uint8_t> {
  const std::uint8_t* const* inputs;   // count + r - 1 rows of offset + n + s * dot_taps * step + byte_chain_slack
  const std::int32_t *weights, *high;  // r x s groups of four signed bytes, the first tap lowest; high: or null
  std::int64_t r = 0, s = 0, step = 0;
  std::int64_t offset = 0, n = 0;
  int count = 0;
  Upcoming upcoming = {};
};
inline constexpr std::int64_t byte_chain_slack = 64;

// Weights as such chains take them, for sums in units of `unit`; empty where the weights are no integers of that unit
// that fit two signed bytes.
struct ByteWeights {
  std::int64_t r = 0, groups = 0;
  double unit = 1;
  std::vector<std::int32_t> low, high;
};
ByteWeights byte_weights(const std::vector<double>& weights, std::int64_t r, std::int64_t s);

// count rows of n bytes, `stride_bytes` apart: convert(fma(scale, sum, bias)), as Finish says for u8.
void chain_and_finish(const Chain<std::uint8_t>& arguments, const Finish& finish, std::byte* to,
                      std::int64_t stride_bytes);

}  // namespace omniconv::kernels
