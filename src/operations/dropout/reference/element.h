// The reference of dropout: an element by itself, as the formula says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"
#include "operations/dropout/dropout.h"

namespace omniconv::reference {

// What is stored for element x, whose word is given.
void dropped(DataType type, const operations::DropoutNumbers& numbers, std::uint32_t word, const std::byte* x,
             std::byte* to);

}  // namespace omniconv::reference
