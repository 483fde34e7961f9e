// Stands for the CUDA devices where they are not built.
#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

constexpr const char* reason = "this build has no CUDA devices (OMNICONV_CUDA=OFF)";

void list(DeviceListing& listing) {
  listing.missing.push_back({"cuda", reason});
}

std::shared_ptr<Device> open(std::string_view rest, const ContextOptions&) {
  throw environment_error("device cuda" + (rest.empty() ? "" : ":" + std::string(rest)) + ": " + reason);
}

}  // namespace

const Backend& cuda_backend() {
  static constexpr Backend backend{DeviceKind::cuda, "cuda", list, open};
  return backend;
}

}  // namespace omniconv::devices
