// What both kinds of GPU devices ask of a buffer's size.
#pragma once

#include <cstdint>

#include "omniconv/context.h"

namespace omniconv::devices {

// Throws where no buffer of the device can have so many bytes.
void check_buffer_size(std::int64_t bytes, const DeviceInfo& info);

}  // namespace omniconv::devices
