// The quotients of two floats that are the hardest to round.
#pragma once

#include <bit>
#include <cstdint>

namespace omniconv {

// f(n, j) for all n of 24 bits whose quotient by the divisor d of 24 bits lies j / (2 d) units of its last place from a
// midpoint of two floats, |j| <= farthest: n 2^t - m d = j with an odd m of 25 bits, and t such that the quotient is at
// least 1 (24) or less (25). None is a midpoint.
template <typename F>
void for_nearest_to_midpoints(std::uint32_t divisor, int farthest, const F& f) {
  const int twos = std::countr_zero(divisor);
  const std::uint32_t odd = divisor >> twos;
  std::uint32_t inverse = odd;  // modulo 2^3, then 2^6, ...
  for (int i = 0; i < 4; ++i) inverse *= 2 - odd * inverse;
  for (int t = 24; t <= 25; ++t) {
    const std::uint32_t period = 1u << (t - twos);
    for (int j = -farthest; j <= farthest; ++j) {
      if (j == 0 || (j & ((1 << twos) - 1)) != 0) continue;
      for (std::uint32_t m = static_cast<std::uint32_t>(-j / (1 << twos)) * inverse % period; m < 1u << 25;
           m += period) {
        if (m < 1u << 24 || m % 2 == 0) continue;
        const std::int64_t n = (std::int64_t{m} * divisor + j) >> t;
        if (n >= 1 << 23 && n < 1 << 24 && (n < divisor) == (t == 25)) f(static_cast<float>(n), j);
      }
    }
  }
}

}  // namespace omniconv
