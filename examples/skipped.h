// What an example says, and ends with, where there is no device for it.
#pragma once

#include <omniconv/context.h>

#include <cstdio>
#include <string_view>

constexpr int skipped = 77;  // what ctest is told to look for

// Whether there is a device of this kind. Where there is none the reason is printed.
inline bool has_device(const char* example, std::string_view kind) {
  const omniconv::DeviceListing listing = omniconv::list_devices();
  for (const omniconv::DeviceInfo& info : listing.found)
    if (info.id.starts_with(kind)) return true;
  for (const auto& [id, reason] : listing.missing)
    if (id.starts_with(kind))
      std::printf("%s: skipped, for want of a device: %s: %s\n", example, id.c_str(), reason.c_str());
  return false;
}
