// Which CUDA devices there are, and why the others cannot be used.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "devices/cuda/cuda_device.h"
#include "devices/cuda/cuda_launch.h"
#include "devices/matrix_units.h"
#include "devices/unknown_device.h"

namespace omniconv::devices::cuda {
namespace {

struct Found {
  CUdevice device = 0;
  const Nvrtc* nvrtc = nullptr;
  DeviceFacts facts;
};

int attribute(CUdevice device, int what) {
  int value = 0;
  check("cuDeviceGetAttribute", api().DeviceGetAttribute(&value, what, device));
  return value;
}

std::string name_of(CUdevice device) {
  char name[256] = {};
  check("cuDeviceGetName", api().DeviceGetName(name, sizeof name - 1, device));
  return name;
}

DeviceInfo describe(CUdevice device, std::string id, int version, const Nvrtc& nvrtc, Capability capability) {
  DeviceInfo info;
  info.id = std::move(id);
  info.name = name_of(device);
  info.driver = fmt::format("CUDA {}.{}, NVRTC {}, compute capability {}.{}", version / 1000, version % 1000 / 10,
                            nvrtc.version(), capability / 10, capability % 10);
  info.compute_units = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  std::size_t bytes = 0;
  check("cuDeviceTotalMem", api().DeviceTotalMem(&bytes, device));
  info.memory_bytes = info.max_buffer_bytes = static_cast<std::int64_t>(bytes);
  info.local_memory_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  info.is_gpu = true;
  return info;
}

DeviceFacts facts_of(CUdevice device, DeviceInfo info, const Nvrtc& nvrtc, Capability capability) {
  DeviceFacts facts;
  facts.kind = DeviceKind::cuda;
  facts.info = std::move(info);
  facts.has_byte_dots = capability >= 61;
  facts.takes_occupancy = true;
  facts.most_local_memory_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  facts.unit_local_memory_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  facts.compute_capability = capability;
  facts.has_clusters = has_launch_attributes(capability);
  facts.has_overlap = facts.has_clusters && nvrtc.knows(90);  // else texts do not wait
  facts.has_meetings = facts.has_clusters && attribute(device, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
  facts.has_tensor_maps = has_tensor_maps(capability);
  facts.matrix_units = matrix_units_of(capability);
  return facts;
}

void scan_device(int index, int version, std::vector<Found>& found, DeviceListing& listing) {
  const std::string id = fmt::format("cuda:{}", index);
  Found one;
  check("cuDeviceGet", api().DeviceGet(&one.device, index));
  std::string why_not;
  one.nvrtc = Nvrtc::find(version / 1000, &why_not);
  const Capability capability = 10 * attribute(one.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                                attribute(one.device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (one.nvrtc) why_not = one.nvrtc->refusal(capability);
  if (attribute(one.device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE) == CU_COMPUTEMODE_PROHIBITED)
    why_not = "its compute mode is 'prohibited'";
  if (!why_not.empty()) {
    listing.missing.push_back({id, fmt::format("{}: {}", name_of(one.device), why_not)});
    return;
  }
  one.facts = facts_of(one.device, describe(one.device, id, version, *one.nvrtc, capability), *one.nvrtc, capability);
  found.push_back(std::move(one));
}

void note_peers(std::vector<Found>& found) {
  for (Found& one : found)
    for (const Found& other : found) {
      int can = 0;
      if (&one != &other && api().DeviceCanAccessPeer(&can, one.device, other.device) == CUDA_SUCCESS && can != 0)
        one.facts.info.peers.push_back(other.facts.info.id);
    }
}

// All usable devices; the rest goes to `listing.missing`.
std::vector<Found> scan(DeviceListing& listing) {
  std::vector<Found> found;
  std::string why_not;
  if (!find_api(&why_not)) {
    listing.missing.push_back({"cuda", why_not});
    return found;
  }
  int count = 0, version = 0;
  try {
    check("cuDeviceGetCount", api().DeviceGetCount(&count));
    version = driver_version();
  } catch (const Error& error) {
    listing.missing.push_back({"cuda", error.what()});
    return found;
  }
  if (count == 0) listing.missing.push_back({"cuda", "the CUDA driver is there, but no device that it can use"});
  for (int i = 0; i < count; ++i) {
    try {
      scan_device(i, version, found, listing);
    } catch (const Error& error) {
      listing.missing.push_back({fmt::format("cuda:{}", i), error.what()});
    }
  }
  note_peers(found);
  return found;
}

void list(DeviceListing& listing) {
  for (Found& found : scan(listing)) listing.found.push_back(std::move(found.facts.info));
}

std::shared_ptr<Device> open(std::string_view rest, const ContextOptions& options) {
  DeviceListing listing;
  std::vector<Found> found = scan(listing);
  const std::string id = rest.empty() ? "cuda" : fmt::format("cuda:{}", rest);
  const auto chosen =
      std::find_if(found.begin(), found.end(), [&](const Found& f) { return rest.empty() || f.facts.info.id == id; });
  if (chosen != found.end())
    return std::make_shared<CudaDevice>(std::move(chosen->facts), chosen->device, *chosen->nvrtc,
                                        make_program_cache(options),
                                        options.quick_start.value_or(std::thread::hardware_concurrency() >= 4));

  for (Found& f : found) listing.found.push_back(std::move(f.facts.info));
  throw unknown_device(id, listing);
}

}  // namespace
}  // namespace omniconv::devices::cuda

namespace omniconv::devices {

const Backend& cuda_backend() {
  static constexpr Backend backend{DeviceKind::cuda, "cuda", cuda::list, cuda::open};
  return backend;
}

}  // namespace omniconv::devices
