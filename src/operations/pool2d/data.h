// The data for checks of pool2d: numbers with ties, signed zeros, infinities and NaN, and indices as a forward pass
// could have written them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "operations/operation.h"
#include "operations/pool2d/shape.h"

namespace omniconv::operations {

// Small whole numbers with many ties, among them zeros of both signs, infinities, NaN of both signs and any payload,
// and stretches that hold nothing but the lowest value.
void fill_with_specials(DataType type, std::uint64_t seed, std::span<std::byte> data);

// For each window one of its elements inside the image.
void fill_indices(const Pool2dShape& shape, std::uint64_t seed, std::span<std::byte> data);

// Gradients of averages that are whole multiples of their divisors: all shares are small integers.
void fill_multiples(const Pool2dShape& shape, DataType type, std::uint64_t seed, std::span<std::byte> data);
// Whether such gradients can be stored, and their sums are exact.
bool are_multiples_exact(const Pool2dShape& shape, DataType type);

}  // namespace omniconv::operations
