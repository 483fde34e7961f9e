// Copies past the caches.
#pragma once

#include <cstddef>
#include <cstdint>

namespace omniconv::kernels {

// For results that nobody reads soon: the target's lines are not fetched first. Ends with the caller's stream_fence(),
// once, before anyone else may read.
void stream_copy(std::byte* to, const std::byte* from, std::int64_t bytes);
void stream_fence();

}  // namespace omniconv::kernels
