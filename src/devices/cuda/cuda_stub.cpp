// Stands for the CUDA devices where they are not built.
#include "devices/device.h"
#include "omniconv/cuda.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr const char* reason = "this build has no CUDA devices (OMNICONV_CUDA=OFF)";

void list(DeviceListing& listing) {
  listing.missing.push_back({"cuda", reason});
}

std::shared_ptr<devices::Device> open(std::string_view rest, const ContextOptions&) {
  throw environment_error("device cuda" + (rest.empty() ? "" : ":" + std::string(rest)) + ": " + reason);
}

}  // namespace

namespace devices {

const Backend& cuda_backend() {
  static constexpr Backend backend{DeviceKind::cuda, "cuda", list, open};
  return backend;
}

}  // namespace devices

namespace cuda {

Buffer borrow_buffer(const Context&, unsigned long long, std::int64_t) {
  throw environment_error(reason);
}
Queue borrow_queue(const Context&, void*, const QueueOptions&) {
  throw environment_error(reason);
}

}  // namespace cuda
}  // namespace omniconv
