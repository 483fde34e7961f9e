// Stands for the OpenCL devices where they are not built.
#include "devices/device.h"
#include "omniconv/error.h"
#include "omniconv/opencl.h"

namespace omniconv {
namespace {

constexpr const char* reason = "this build has no OpenCL devices (OMNICONV_OPENCL=OFF)";

void list(DeviceListing& listing) {
  listing.missing.push_back({"opencl", reason});
}

std::shared_ptr<devices::Device> open(std::string_view rest, const ContextOptions&) {
  throw environment_error("device opencl" + (rest.empty() ? "" : ":" + std::string(rest)) + ": " + reason);
}

}  // namespace

namespace devices {

const Backend& opencl_backend() {
  static constexpr Backend backend{DeviceKind::opencl, "opencl", list, open};
  return backend;
}

}  // namespace devices

namespace opencl {

Context borrow_context(void*, void*) {
  throw environment_error(reason);
}
Buffer borrow_buffer(const Context&, void*) {
  throw environment_error(reason);
}
Queue borrow_queue(const Context&, void*) {
  throw environment_error(reason);
}

}  // namespace opencl
}  // namespace omniconv
