#include "omniconv/context.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string_view>

#include "choice/plan_record.h"
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

// The first GPU, of CUDA where that knows one; empty where there is none, and then `listing` says what was looked for.
std::string first_gpu(DeviceListing& listing) {
  for (const devices::Backend& backend : backends()) {
    backend.list(listing);
    for (const DeviceInfo& info : listing.found)
      if (info.is_gpu) return info.id;
  }
  return {};
}

// auto is a GPU where there is one, else the CPU's own kernels rather than an OpenCL driver for the same cores.
std::string resolved(const std::string& id) {
  if (id != "auto" && id != "gpu") return id;
  DeviceListing listing;
  const std::string gpu = first_gpu(listing);
  if (!gpu.empty()) return gpu;
  if (id == "auto") return "cpu";
  std::string reasons;
  for (const auto& [missing, reason] : listing.missing)
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", missing, reason);
  throw environment_error(fmt::format("device gpu: no GPU was found{}{}{}; --device cpu is always there",
                                      reasons.empty() ? "" : " (", reasons, reasons.empty() ? "" : ")"));
}

// The form of what may stand behind a kind's colon; empty for the CPU, which has none.
std::string_view index_form(devices::DeviceKind kind) {
  switch (kind) {
    case devices::DeviceKind::cuda: return "cuda:I";
    case devices::DeviceKind::opencl: return "opencl:PLATFORM.DEVICE";
    case devices::DeviceKind::cpu: break;
  }
  return {};
}

bool has_form(devices::DeviceKind kind, std::string_view index) {
  const auto is_number = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (kind == devices::DeviceKind::cpu) return false;
  if (kind == devices::DeviceKind::cuda) return is_number(index);
  const std::size_t point = index.find('.');
  return point != std::string_view::npos && is_number(index.substr(0, point)) && is_number(index.substr(point + 1));
}

Error misspelt_device(const std::string& id, const devices::Backend& backend) {
  if (backend.kind == devices::DeviceKind::cpu)
    return bad_input(fmt::format("unknown device '{}': there is one CPU device, cpu", id));
  std::string known;
  for (const DeviceInfo& info : list_devices().found)
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", info.id, info.name);
  return bad_input(fmt::format("device '{}' must be written {} or {}, with numbers from 0; there are: {}", id,
                               backend.prefix, index_form(backend.kind), known));
}

std::shared_ptr<devices::Device> open_device(const ContextOptions& options) {
  const std::string id = resolved(options.device);
  const std::size_t colon = id.find(':');
  const std::string_view prefix = std::string_view(id).substr(0, colon);
  for (const devices::Backend& backend : backends()) {
    if (prefix != backend.prefix) continue;
    if (colon == std::string::npos) return backend.open({}, options);
    const std::string_view index = std::string_view(id).substr(colon + 1);
    if (!has_form(backend.kind, index)) throw misspelt_device(id, backend);
    return backend.open(index, options);
  }
  static constexpr std::array<std::string_view, 5> known = {"auto", "cpu", "gpu", "cuda", "opencl"};
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

Context::Context(const Options& options) : Context(open_device(options)) {}
Context::Context(std::shared_ptr<devices::Device> device)
    : device_(std::move(device)), plans_(std::make_shared<choice::PlanMemory>()) {}

const DeviceInfo& Context::device() const {
  return device_->info();
}
Buffer Context::allocate(std::int64_t bytes) const {
  return Buffer(device_->allocate(bytes));
}
Buffer Context::borrow(void* memory, std::int64_t bytes) const {
  return Buffer(device_->borrow(memory, bytes));
}

}  // namespace omniconv
