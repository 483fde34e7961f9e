// The reference of add: an element by itself, as the formula says.
#pragma once

#include <cstddef>

#include "omniconv/add.h"

namespace omniconv::reference {

// What is stored for an element of the base, and one of the other array, null where there is none.
void added(const AddProblem& problem, const std::byte* base, const std::byte* other, std::byte* to);

}  // namespace omniconv::reference
