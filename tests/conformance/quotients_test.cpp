// The proof of exact_division.kernel that quotients by a refined reciprocal are the nearest floats, as far as it rests
// on trying: every divisor, every approximate reciprocal that a device may have, every quotient near a midpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "midpoints_testing.h"

namespace omniconv {
namespace {

constexpr std::uint32_t first_divisor = 1u << 23, beyond_divisors = 1u << 24;

float newton_step(float d, float r) {
  return std::fma(r, std::fma(-d, r, 1.0f), r);
}
float corrected_quotient(float n, float d, float r) {
  const float q = std::fma(n, r, 0.0f);
  return std::fma(std::fma(-q, d, n), r, q);
}

// What refine(r) makes of all r up to so many units from the float nearest to 1 / d.
template <typename Refine>
std::vector<float> refined(float d, int units, const Refine& refine) {
  const float nearest = 1.0f / d;
  std::vector<float> result;
  for (int unit = -units; unit <= units; ++unit) {
    const float r = refine(std::bit_cast<float>(std::bit_cast<std::int32_t>(nearest) + unit));
    if (std::find(result.begin(), result.end(), r) == result.end()) result.push_back(r);
  }
  return result;
}

// As NVIDIA's devices may have it. From 6 / (2 d) units of a midpoint on nothing can go wrong.
TEST(Quotients, OfAReciprocalThatIsAUnitOff) {
  std::set<std::pair<float, float>> wrong;
  std::int64_t count = 0, wrong_from_nearest = 0;
  for (std::uint32_t divisor = first_divisor; divisor < beyond_divisors; ++divisor) {
    const auto d = static_cast<float>(divisor);
    const float from_nearest = newton_step(d, 1.0f / d);
    const std::vector<float> reciprocals = refined(d, 1, [&](float r) { return newton_step(d, r); });
    for_nearest_to_midpoints(divisor, 6, [&](float n, int) {
      ++count;
      if (corrected_quotient(n, d, from_nearest) != n / d) ++wrong_from_nearest;
      for (const float r : reciprocals)
        if (corrected_quotient(n, d, r) != n / d) wrong.insert({std::ldexp(n, -23), std::ldexp(d, -23)});
    });
  }
  EXPECT_EQ(wrong_from_nearest, 0);
  EXPECT_GT(count, 30'000'000);
  EXPECT_EQ(wrong, (std::set<std::pair<float, float>>{{0x1.aaaaa6p0f, 0x1.fffffap0f}, {1.0f, 0x1.fffffep0f}}));
}

// As other devices have it: the reciprocal has become the nearest, from which Markstein's theorem does the rest.
TEST(Quotients, OfAReciprocalThatIsFourUnitsOff) {
  int wrong = 0;
  for (std::uint32_t divisor = first_divisor; divisor < beyond_divisors; ++divisor) {
    const auto d = static_cast<float>(divisor);
    const std::vector<float> reciprocals = refined(d, 4, [&](float r) {
      const float twice = newton_step(d, newton_step(d, r));
      return divisor == beyond_divisors - 1 ? std::bit_cast<float>(std::bit_cast<std::int32_t>(twice) | 1) : twice;
    });
    if (reciprocals.size() != 1 || reciprocals.front() != 1.0f / d) ++wrong;
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace omniconv
