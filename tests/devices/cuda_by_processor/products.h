// What matrix units make of 16 terms of 64 rows by some columns, as they are modelled (devices/matrix_units.h).
#pragma once

#include <array>
#include <cstddef>

#include "engine.h"

namespace omniconv::by_processor {

// Whether two work items ask for the same product.
bool are_alike(const Product& a, const Product& b);
// The product of a warpgroup, each of whose work items asks for it; operands lie from there on.
void add_product(const std::array<const Product*, 128>& of_items, const std::byte* local);

}  // namespace omniconv::by_processor
