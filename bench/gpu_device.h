// The device of a study of GPUs.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv::bench {

// Of cuda[:I] or opencl[:PLATFORM.DEVICE].
inline std::shared_ptr<devices::Device> open_gpu(const std::string& id) {
  const std::string kind = id.substr(0, id.find(':'));
  if (kind != "cuda" && kind != "opencl")
    throw bad_input(
        fmt::format("--device {}: must be cuda[:I] or opencl[:PLATFORM.DEVICE], as in --device cuda:0", id));
  const devices::Backend& backend = kind == "cuda" ? devices::cuda_backend() : devices::opencl_backend();
  return backend.open(id == kind ? "" : id.substr(kind.size() + 1), {});
}

}  // namespace omniconv::bench
