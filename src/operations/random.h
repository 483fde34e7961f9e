// Random data for checks and timings: the same seed gives the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "omniconv/types.h"

namespace omniconv::operations {

// Element i is number(random bits). Large arrays repeat themselves after 1,048,583 elements, a prime number.
void fill_by(DataType type, std::uint64_t seed, std::span<std::byte> data,
             const std::function<double(std::uint64_t)>& number);
// In [-1, 1), of bits of which the eleven lowest do not matter.
double real_number(std::uint64_t bits);

// Multiples of 1 in [-most, most], or (most 0) numbers in [-1, 1). Large arrays repeat themselves after 1,048,583
// elements, a prime number.
void fill_random(DataType type, int most, std::uint64_t seed, std::span<std::byte> data);

// Numbers of array `array` where sums are of products of two `factors`: in [-1, 1), but the first factor's 2^16 times
// as large (fp16, whose range is short: 2^4) and the second's as much smaller. So products are in [-1, 1) too, and a
// solver is found out that takes one factor's scale for the other's.
void fill_reals(DataType type, std::span<const std::size_t> factors, std::size_t array, std::uint64_t seed,
                std::span<std::byte> data);

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
