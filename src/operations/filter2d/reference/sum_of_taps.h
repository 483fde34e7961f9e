// The sum of a reference under one output element.
#pragma once

#include <cmath>
#include <cstdint>

#include "operations/filter2d/reference/pixel.h"
#include "operations/filter2d/weights.h"

namespace omniconv::reference {

// Rules 2 to 5 in the accumulating type; tap(r, s) is what the weight in row r and column s meets.
template <typename Real, typename Tap>
Real sum_of_taps(const Weights& weights, const Tap& tap) {
  if (weights.form == WeightForm::equal) {
    std::int64_t sum = 0;
    for (std::int64_t r = 0; r < weights.r; ++r)
      for (std::int64_t s = 0; s < weights.s; ++s) sum += static_cast<std::int64_t>(tap(r, s));
    return static_cast<Real>(sum) * static_cast<Real>(weights.values.front());
  }
  if (weights.form == WeightForm::rank_one) {
    Real down = 0;
    for (std::int64_t r = 0; r < weights.r; ++r) {
      Real along = 0;
      for (std::int64_t s = 0; s < weights.s; ++s)
        along =
            std::fma(static_cast<Real>(weights.row[static_cast<std::size_t>(s)]), static_cast<Real>(tap(r, s)), along);
      down = std::fma(static_cast<Real>(weights.column[static_cast<std::size_t>(r)]), along, down);
    }
    return down;
  }
  Real sum = 0;
  for (std::int64_t r = 0; r < weights.r; ++r)
    for (std::int64_t s = 0; s < weights.s; ++s)
      sum = std::fma(static_cast<Real>(weights.values[static_cast<std::size_t>(r * weights.s + s)]),
                     static_cast<Real>(tap(r, s)), sum);
  return sum;
}

}  // namespace omniconv::reference
