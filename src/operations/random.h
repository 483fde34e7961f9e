// Random data for checks and timings: the same seed gives the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "omniconv/types.h"

namespace omniconv::operations {

// Multiples of 1 in [-most, most], or (most 0) numbers in [-1, 1). Large arrays repeat themselves after 1,048,583
// elements, a prime number.
void fill_random(DataType type, int most, std::uint64_t seed, std::span<std::byte> data);

// The largest `most` for which `terms` products of such integers sum up exactly in fp32, at most 8. Where not even sums
// of -1, 0 and 1 would, 0 is what all but one in `sparse_ones` elements shall be.
struct ExactIntegers {
  int most = 1;
  std::int64_t sparse_ones = 1;
};
ExactIntegers exact_integers(double terms);
// Such integers.
void fill_integers(DataType type, const ExactIntegers& integers, std::uint64_t seed, std::span<std::byte> data);

}  // namespace omniconv::operations
