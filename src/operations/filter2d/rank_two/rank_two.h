// Weights as two products of a column and a row: whom that serves, how exactly (README.md).
#pragma once

#include <optional>

#include "operations/filter2d/filter2d.h"
#include "operations/filter2d/vector/tile_filter.h"

namespace omniconv::operations {

// w = columns[r, 0] * rows[0, s] + columns[r, 1] * rows[1, s], but for `difference`.
struct TwoProducts {
  kernels::Products factors;  // rounded to the accumulating type
  // Over all taps, with m the sum of both products' magnitudes: the largest m / |w|, infinite where w alone is 0; and
  // the largest |w - products| in units of epsilon * m.
  double amplification = 1, difference = 0;
};

// The largest difference that the bound's constant covers.
inline constexpr double largest_difference = 4;

// The first of a few factorisations whose difference is covered and whose amplification is at most `enough`; else the
// one of the smallest amplification among those that are covered, if any.
std::optional<TwoProducts> two_products(const Weights& weights, double enough);

// What two products amplify errors by at most where their bound is no larger than that of one chain over the taps.
double largest_amplification(const Filter2dTask& task);

ErrorBound rank_two_bound(const Filter2dTask& task, double amplification);

}  // namespace omniconv::operations
