// What is said of an id that names no usable device.
#pragma once

#include <string>

#include "omniconv/context.h"
#include "omniconv/error.h"

namespace omniconv::devices {

// Of a kind of device with this listing: why that one is missing, or which there are.
Error unknown_device(const std::string& id, const DeviceListing& listing);

}  // namespace omniconv::devices
