// What matrix units make of 16 terms of 64 rows by some columns, as they are modelled (devices/matrix_units.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine.h"

namespace omniconv::by_processor {

// The sum before and 16 products of 16-bit numbers.
float sum_of_products(const std::array<std::uint16_t, 16>& a, const std::array<std::uint16_t, 16>& b, bool are_bf16,
                      float before);
// And eight of words, of which units read the 19 leading bits.
float sum_of_tf32_products(const std::array<std::uint32_t, 8>& a, const std::array<std::uint32_t, 8>& b, float before);
// Whether two work items ask for the same product.
bool are_alike(const Product& a, const Product& b);
// The product of a warpgroup, each of whose work items asks for it; operands lie from there on.
void add_product(const std::array<const Product*, 128>& of_items, const std::byte* local);

}  // namespace omniconv::by_processor
