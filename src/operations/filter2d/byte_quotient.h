// Means of windows of bytes without floating point: a multiplication of a sum, where that gives what the rule says.
#pragma once

#include <cstdint>
#include <optional>

namespace omniconv::operations {

// ((sum + add) * multiplier >> bits) >> shift.
struct SumQuotient {
  std::uint64_t add = 0, multiplier = 0;
  int bits = 0, shift = 0;

  std::uint64_t of(std::int64_t sum) const {
    return (static_cast<std::uint64_t>(sum) + add) * multiplier >> bits >> shift;
  }
};

// The rule: fma(scale, sum * weight, bias) in fp32, rounded to a byte.
struct ByteRule {
  double weight, scale, bias;
};

// One that finishes every sum from 0 to `most` so, if it is found: sum + add and multiplier have at most `bits` digits,
// 32 at the most, and no quotient is above `largest`, which is 255 or more.
std::optional<SumQuotient> sum_quotient(const ByteRule& rule, std::int64_t most, int bits, std::uint64_t largest);

}  // namespace omniconv::operations
