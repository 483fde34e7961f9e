// Which OpenCL devices there are, and why the others cannot be used; the handles of omniconv/opencl.h.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "devices/opencl/opencl_device.h"
#include "devices/unknown_device.h"
#include "omniconv/opencl.h"

namespace omniconv::devices::opencl {

namespace {

template <typename Ask>
std::string text_by(const char* call, const Ask& ask) {
  std::size_t size = 0;
  check(call, ask(0, nullptr, &size));
  std::string value(size, '\0');
  check(call, ask(size, value.data(), nullptr));
  value.resize(std::min(value.find('\0'), value.size()));
  const std::size_t first = value.find_first_not_of(' ');
  return first == std::string::npos ? "" : value.substr(first, value.find_last_not_of(' ') - first + 1);
}

}  // namespace

std::string text(cl_platform_id platform, cl_uint what) {
  return text_by("clGetPlatformInfo", [=](std::size_t size, void* value, std::size_t* needed) {
    return api().GetPlatformInfo(platform, what, size, value, needed);
  });
}

std::string text(cl_device_id device, cl_uint what) {
  return text_by("clGetDeviceInfo", [=](std::size_t size, void* value, std::size_t* needed) {
    return api().GetDeviceInfo(device, what, size, value, needed);
  });
}

DeviceInfo describe(cl_device_id device, std::string id, const std::string& platform_name) {
  DeviceInfo info;
  info.id = std::move(id);
  info.name = text(device, CL_DEVICE_NAME);
  info.driver =
      fmt::format("{}, {}, driver {}", platform_name, text(device, CL_DEVICE_VERSION), text(device, CL_DRIVER_VERSION));
  info.compute_units = static_cast<int>(fact<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
  info.memory_bytes = static_cast<std::int64_t>(fact<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE));
  info.local_memory_bytes = static_cast<std::int64_t>(fact<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE));
  info.max_buffer_bytes = static_cast<std::int64_t>(fact<cl_ulong>(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  info.is_gpu = (fact<cl_bitfield>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
  return info;
}

std::string unusable(cl_device_id device) {
  const std::string name = text(device, CL_DEVICE_NAME), version = text(device, CL_DEVICE_VERSION);
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor) != 2 || major < 1 || (major == 1 && minor < 2))
    return fmt::format("{} has version '{}': OpenCL 1.2 is needed", name, version);
  if (!fact<cl_bool>(device, CL_DEVICE_AVAILABLE)) return fmt::format("{} is not available", name);
  if (!fact<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE)) return fmt::format("{} has no compiler", name);
  // The embedded profile may round toward zero and lack 64-bit integers.
  if (const std::string profile = text(device, CL_DEVICE_PROFILE); profile != "FULL_PROFILE")
    return fmt::format("{} has the profile {}: the full one is needed", name, profile);
  return {};
}

namespace {

struct Found {
  cl_platform_id platform;
  cl_device_id device;
  DeviceInfo info;
};

void scan_platform(cl_platform_id platform, std::size_t index, std::vector<Found>& found, DeviceListing& listing) {
  const std::string platform_name = text(platform, CL_PLATFORM_NAME);
  const bool pocl = platform_name == "Portable Computing Language";
  // Asked for its devices, PoCL ends the process where it cannot read how the processor is made.
  if (pocl && ::access("/sys/devices/system/cpu", R_OK) != 0) {
    listing.missing.push_back(
        {fmt::format("opencl:{}", index), fmt::format("{} needs /sys/devices/system/cpu: mount /sys", platform_name)});
    return;
  }
  // PoCL gives up where it cannot keep its compiled kernels.
  const char* const hint = pocl ? "; it needs a writable HOME or POCL_CACHE_DIR" : "";
  cl_uint count = 0;
  const cl_int code = api().GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && count == 0)) {
    listing.missing.push_back(
        {fmt::format("opencl:{}", index), fmt::format("the platform {} has no devices{}", platform_name, hint)});
    return;
  }
  check("clGetDeviceIDs", code);
  std::vector<cl_device_id> devices(count);
  check("clGetDeviceIDs", api().GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string id = fmt::format("opencl:{}.{}", index, i);
    try {
      if (const std::string reason = unusable(devices[i]); !reason.empty())
        listing.missing.push_back({id, reason});
      else
        found.push_back({platform, devices[i], describe(devices[i], id, platform_name)});
    } catch (const Error& error) {
      listing.missing.push_back({id, error.what()});
    }
  }
}

// All usable devices; the rest goes to `listing.missing`.
std::vector<Found> scan(DeviceListing& listing) {
  std::vector<Found> found;
  std::string why_not;
  if (!find_api(&why_not)) {
    listing.missing.push_back({"opencl", why_not});
    return found;
  }
  cl_uint count = 0;
  const cl_int code = api().GetPlatformIDs(0, nullptr, &count);
  if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0)) {
    listing.missing.push_back({"opencl",
                               "the OpenCL loader is there, but no driver (platform); Debian's package for the CPU is "
                               "pocl-opencl-icd, a GPU's driver comes from its vendor"});
    return found;
  }
  if (code != CL_SUCCESS) {
    listing.missing.push_back({"opencl", call_error("clGetPlatformIDs", code).what()});
    return found;
  }
  std::vector<cl_platform_id> platforms(count);
  check("clGetPlatformIDs", api().GetPlatformIDs(count, platforms.data(), nullptr));
  for (std::size_t i = 0; i < platforms.size(); ++i) {
    try {
      scan_platform(platforms[i], i, found, listing);
    } catch (const Error& error) {
      listing.missing.push_back({fmt::format("opencl:{}", i), error.what()});
    }
  }
  return found;
}

void list(DeviceListing& listing) {
  for (Found& found : scan(listing)) listing.found.push_back(std::move(found.info));
}

std::shared_ptr<Device> open(std::string_view rest, const ContextOptions& options) {
  DeviceListing listing;
  std::vector<Found> found = scan(listing);
  const std::string id = rest.empty() ? "opencl" : fmt::format("opencl:{}", rest);
  auto chosen = std::find_if(found.begin(), found.end(),
                             [&](const Found& f) { return rest.empty() ? f.info.is_gpu : f.info.id == id; });
  if (rest.empty() && chosen == found.end()) chosen = found.begin();
  if (chosen != found.end())
    return std::make_shared<OpenClDevice>(std::move(chosen->info), chosen->platform, chosen->device,
                                          make_program_cache(options));

  for (Found& f : found) listing.found.push_back(std::move(f.info));
  throw unknown_device(id, listing);
}

OpenClDevice& device_of(const Context& context, const char* what) {
  auto* const device = dynamic_cast<OpenClDevice*>(context.impl().get());
  if (!device)
    throw bad_input(
        fmt::format("borrowing a {}: the context's device {} is no OpenCL device", what, context.device().id));
  return *device;
}

std::string id_of(cl_device_id device) {
  DeviceListing listing;
  for (const Found& found : scan(listing))
    if (found.device == device) return found.info.id;
  return "opencl:borrowed";
}

}  // namespace
}  // namespace omniconv::devices::opencl

namespace omniconv::devices {

const Backend& opencl_backend() {
  static constexpr Backend backend{DeviceKind::opencl, "opencl", opencl::list, opencl::open};
  return backend;
}

}  // namespace omniconv::devices

namespace omniconv::opencl {

namespace impl = devices::opencl;

Context borrow_context(void* cl_context, void* cl_device_id) {
  const auto context = static_cast<impl::cl_context>(cl_context);
  const auto device = static_cast<impl::cl_device_id>(cl_device_id);
  if (!context || !device) throw bad_input("borrowing a cl_context: the context or the device is a null handle");
  std::size_t bytes = 0;
  impl::check("clGetContextInfo", impl::api().GetContextInfo(context, impl::CL_CONTEXT_DEVICES, 0, nullptr, &bytes));
  std::vector<impl::cl_device_id> devices(bytes / sizeof(impl::cl_device_id));
  impl::check("clGetContextInfo",
              impl::api().GetContextInfo(context, impl::CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr));
  if (std::find(devices.begin(), devices.end(), device) == devices.end())
    throw bad_input("borrowing a cl_context: the device is none of the context's");
  if (const std::string reason = impl::unusable(device); !reason.empty())
    throw bad_input("borrowing a cl_context: " + reason);
  DeviceInfo info = impl::describe(device, impl::id_of(device), "borrowed context");
  return Context(std::make_shared<impl::OpenClDevice>(std::move(info), context, device));
}

Buffer borrow_buffer(const Context& context, void* cl_mem) {
  return Buffer(impl::device_of(context, "cl_mem").borrow_buffer(static_cast<impl::cl_mem>(cl_mem)));
}

Queue borrow_queue(const Context& context, void* cl_command_queue) {
  return Queue(
      impl::device_of(context, "cl_command_queue").borrow_queue(static_cast<impl::cl_command_queue>(cl_command_queue)));
}

}  // namespace omniconv::opencl
