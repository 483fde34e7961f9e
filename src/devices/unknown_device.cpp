#include "devices/unknown_device.h"

#include <fmt/format.h>

namespace omniconv::devices {

Error unknown_device(const std::string& id, const DeviceListing& listing) {
  for (const DeviceListing::Missing& missing : listing.missing)
    if (missing.id == id || listing.found.empty())
      return environment_error(fmt::format("device {}: {}", id, missing.reason));
  std::string known;
  for (const DeviceInfo& info : listing.found)
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", info.id, info.name);
  return bad_input(fmt::format("device {} does not exist; there are: {}", id, known));
}

}  // namespace omniconv::devices
