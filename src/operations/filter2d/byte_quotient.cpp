#include "operations/filter2d/byte_quotient.h"

#include <cmath>

#include "core/convert.h"

namespace omniconv::operations {

// Both sides are steps that rise with the sum, so that they are the same where they rise at the same sums.
std::optional<SumQuotient> sum_quotient(const ByteRule& rule, std::int64_t most, int bits, std::uint64_t largest) {
  const double slope = rule.scale * rule.weight, limit = std::ldexp(1.0, bits) - 1;
  if (!(slope > 0x1p-30 && slope < 1) || static_cast<double>(most) > limit) return {};
  const auto defined = [&](std::int64_t sum) {
    const float value = static_cast<float>(sum) * static_cast<float>(rule.weight);
    return std::int64_t{
        saturate<std::uint8_t>(std::fma(static_cast<float>(rule.scale), value, static_cast<float>(rule.bias)))};
  };
  std::int64_t rises[256];  // the least sum that gives v, or one past the most
  for (std::int64_t v = 0, sum = 0; v < 256; ++v) {
    std::int64_t end = most + 1;
    while (sum < end) {
      const std::int64_t middle = (sum + end) / 2;
      if (defined(middle) >= v)
        end = middle;
      else
        sum = middle + 1;
    }
    rises[v] = sum;
  }
  const double add = (0.5 + rule.bias) / slope;
  // Without a shift, which GPUs then leave out; else the multiplier has all its digits.
  for (const int shift : {0, -std::ilogb(slope) - 1})
    for (const double m : {std::floor(std::ldexp(slope, bits + shift)), std::ceil(std::ldexp(slope, bits + shift))})
      for (const double a : {std::floor(add), std::ceil(add) - 1, std::ceil(add)}) {
        if (shift >= bits || m > limit || a < 0 || static_cast<double>(most) + a > limit) continue;
        const SumQuotient quotient{static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(m), bits, shift};
        const auto same = [&](std::uint64_t v) {
          const std::int64_t sum = rises[v];
          return (sum > most || quotient.of(sum) >= v) && (sum == 0 || quotient.of(sum - 1) < v);
        };
        bool all = quotient.of(most) <= largest;
        for (std::uint64_t v = 1; v < 256; ++v) all = all && same(v);
        if (all) return quotient;
      }
  return {};
}

}  // namespace omniconv::operations
