// The devices that tests of networks run on.
#pragma once

#include <string>
#include <vector>

#include "omniconv/context.h"

namespace omniconv {

inline std::vector<std::string> devices_here() {
  std::vector<std::string> ids = {"cpu"};
  for (const DeviceInfo& info : list_devices().found)
    if (info.id != "cpu") ids.push_back(info.id);
  return ids;
}

}  // namespace omniconv
