// What a relu lets pass, by bits: as it was, NaN too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/types.h"

namespace omniconv::kernels {

// to = passed where given is above 0 or NaN, else 0, of so many elements. `to` may be `given` or `passed`.
void pass_positive(DataType type, const std::byte* given, const std::byte* passed, std::byte* to,
                   std::int64_t elements);

}  // namespace omniconv::kernels
