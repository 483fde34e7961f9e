#include "omniconv/context.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string_view>

#include "core/suggest.h"
#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

// The fastest kind first, as `auto` chooses among GPUs.
const std::array<std::reference_wrapper<const devices::Backend>, 3>& backends() {
  static const std::array<std::reference_wrapper<const devices::Backend>, 3> all = {
      devices::cuda_backend(), devices::opencl_backend(), devices::cpu_backend()};
  return all;
}

// A GPU where there is one, else the CPU's own kernels rather than an OpenCL driver for the same cores.
std::string resolve_auto() {
  for (const devices::Backend& backend : backends()) {
    DeviceListing listing;
    backend.list(listing);
    for (const DeviceInfo& info : listing.found)
      if (info.is_gpu) return info.id;
  }
  return "cpu";
}

std::shared_ptr<devices::Device> open_device(const ContextOptions& options) {
  const std::string id = options.device == "auto" ? resolve_auto() : options.device;
  const std::size_t colon = id.find(':');
  const std::string_view prefix = std::string_view(id).substr(0, colon);
  for (const devices::Backend& backend : backends())
    if (prefix == backend.prefix)
      return backend.open(colon == std::string::npos ? std::string_view() : std::string_view(id).substr(colon + 1),
                          options);
  static constexpr std::array<std::string_view, 4> known = {"auto", "cpu", "cuda", "opencl"};
  throw bad_input(fmt::format("unknown device '{}': {}", id, suggest(prefix, known)));
}

}  // namespace

DeviceListing list_devices() {
  DeviceListing listing;
  devices::cpu_backend().list(listing);
  devices::cuda_backend().list(listing);
  devices::opencl_backend().list(listing);
  return listing;
}

Context::Context(const Options& options) : device_(open_device(options)) {}

const DeviceInfo& Context::device() const {
  return device_->info();
}
Queue Context::make_queue() const {
  return Queue(device_->make_queue());
}
Buffer Context::allocate(std::int64_t bytes) const {
  return Buffer(device_->allocate(bytes));
}
Buffer Context::borrow(void* memory, std::int64_t bytes) const {
  return Buffer(device_->borrow(memory, bytes));
}

}  // namespace omniconv
