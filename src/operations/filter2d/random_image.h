// Random images for checks and timings: the same seed gives the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "operations/filter2d/weights.h"

namespace omniconv {

// Fills stored elements of the task's input type. Integers take their whole range, a quarter of them at its ends (for a
// pair of kernels, ranges that change along the image); s32 stays where every sum is below 2^24, the range in which
// bits are promised. Floats are uniform in [-1, 1), and opacity among them in [0, 1), half of it 0.
void fill_random(const Filter2dTask& task, std::uint64_t seed, std::span<std::byte> image);

// The filter with a bias that centres the results of such an image in the range of an integer output, so that a check
// is not of saturated values alone. A pair of kernels stays as it is.
Filter centred(const Filter2dProblem& problem, Filter filter);

}  // namespace omniconv
