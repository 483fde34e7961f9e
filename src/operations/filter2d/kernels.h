// What is done with kernels (omniconv/kernels.h), and the weights that problems' texts name.
#pragma once

#include <cstdint>
#include <string_view>

#include "omniconv/filter2d.h"
#include "omniconv/kernels.h"

namespace omniconv {

inline constexpr std::int64_t largest_kernel_side = 4096;

// Throws unless there are 1 to 4096 rows and columns of finite weights, not all zero. `source` begins the message.
void validate(const Kernel& kernel, std::string_view source);

// Divided by the sum of the weights; throws when that is zero, or no larger than the rounding of its additions, and for
// a pair.
void normalize(Kernel& kernel);

// The kernel that does to the stored pixels of an image what `kernel` does to the upright picture: turned as Exif
// orientation 1 .. 8 turns the picture back. Its anchor is set.
Kernel turned_to_stored(const Kernel& kernel, int orientation);

// Weights of the kind that a problem's text names; the same on every platform for the same seed, r and s.
//   random   full rank, no integers, both signs (where there are two weights), a sum of magnitudes of 0.9 and a sum of
//            about 0.7, so that few results of integer images saturate
//   integer  whole numbers from -4 to 4, full rank, not all equal (where there are two weights)
//   rank1    column times row, 12 significant bits each, so that every product is exact in fp32; a sum of magnitudes
//            from 0.5 to 1
//   equal    1 / (r s)
// or a named kernel, which throws when it is not r x s.
Kernel kernel_for(const Filter2dProblem& problem, std::uint64_t seed);
// That kernel as a filter for checks, with a bias that centres integer results (random_image.h).
Filter filter_for(const Filter2dProblem& problem, std::uint64_t seed);

}  // namespace omniconv
