// Vector code of add on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"

namespace omniconv::kernels {

// to = base + other, of so many elements, or base where `other` is null; with `relu` what is not above 0 becomes 0.
// `to` may be `base`.
void add_elements(DataType type, bool relu, const std::byte* base, const std::byte* other, std::byte* to,
                  std::int64_t elements);

}  // namespace omniconv::kernels
