#include "devices/cuda/cuda_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace omniconv::devices::cuda {
namespace {

struct Loader {
  Api api{};
  std::string why_not;  // empty: usable
};

std::string describe(const Api& api, CUresult code) {
  const char *name = nullptr, *text = nullptr;
  if (!api.GetErrorName || api.GetErrorName(code, &name) != CUDA_SUCCESS || !name) name = "an unknown error";
  if (!api.GetErrorString || api.GetErrorString(code, &text) != CUDA_SUCCESS || !text) text = "the driver says no more";
  return fmt::format("{} ({}): {}", name, code, text);
}

template <typename Function>
void bind_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// The library stays open for good: the driver leaves threads behind that run in it.
Loader open_loader() {
  Loader loader;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const reason = dlerror();
    loader.why_not =
        fmt::format("no CUDA driver ({}); it comes with the driver of an NVIDIA GPU", reason ? reason : "no reason");
    return loader;
  }
  const auto bind = [&](const char* name, auto& function) {
    bind_function(library, name, function);
    if (!function && loader.why_not.empty())
      loader.why_not = fmt::format("libcuda.so.1 has no {}: a driver for CUDA 11.2 or newer is needed", name);
  };
  Api& api = loader.api;
  bind("cuGetErrorName", api.GetErrorName);
  bind("cuGetErrorString", api.GetErrorString);
  bind("cuInit", api.Init);
  bind("cuDriverGetVersion", api.DriverGetVersion);
  bind("cuDeviceGetCount", api.DeviceGetCount);
  bind("cuDeviceGet", api.DeviceGet);
  bind("cuDeviceGetName", api.DeviceGetName);
  bind("cuDeviceGetAttribute", api.DeviceGetAttribute);
  bind("cuDeviceTotalMem_v2", api.DeviceTotalMem);
  bind("cuDevicePrimaryCtxRetain", api.DevicePrimaryCtxRetain);
  bind("cuDevicePrimaryCtxRelease_v2", api.DevicePrimaryCtxRelease);
  bind("cuCtxPushCurrent_v2", api.CtxPushCurrent);
  bind("cuCtxPopCurrent_v2", api.CtxPopCurrent);
  bind("cuMemGetInfo_v2", api.MemGetInfo);
  bind("cuMemAlloc_v2", api.MemAlloc);
  bind("cuMemFree_v2", api.MemFree);
  bind("cuPointerGetAttribute", api.PointerGetAttribute);
  bind("cuMemHostAlloc", api.MemHostAlloc);
  bind("cuMemFreeHost", api.MemFreeHost);
  bind("cuMemHostRegister_v2", api.MemHostRegister);
  bind("cuMemHostUnregister", api.MemHostUnregister);
  bind("cuMemHostGetDevicePointer_v2", api.MemHostGetDevicePointer);
  bind("cuMemcpyHtoDAsync_v2", api.MemcpyHtoDAsync);
  bind("cuMemcpyDtoHAsync_v2", api.MemcpyDtoHAsync);
  bind("cuMemcpyAsync", api.MemcpyAsync);
  bind("cuMemcpyPeerAsync", api.MemcpyPeerAsync);
  bind("cuDeviceCanAccessPeer", api.DeviceCanAccessPeer);
  bind("cuCtxEnablePeerAccess", api.CtxEnablePeerAccess);
  bind("cuStreamCreate", api.StreamCreate);
  bind("cuStreamDestroy_v2", api.StreamDestroy);
  bind("cuStreamGetCtx", api.StreamGetCtx);
  bind("cuStreamWaitEvent", api.StreamWaitEvent);
  bind("cuEventCreate", api.EventCreate);
  bind("cuEventDestroy_v2", api.EventDestroy);
  bind("cuEventRecord", api.EventRecord);
  bind("cuEventQuery", api.EventQuery);
  bind("cuEventSynchronize", api.EventSynchronize);
  bind("cuEventElapsedTime", api.EventElapsedTime);
  bind("cuModuleLoadData", api.ModuleLoadData);
  bind("cuModuleUnload", api.ModuleUnload);
  bind("cuModuleGetFunction", api.ModuleGetFunction);
  bind("cuLaunchKernel", api.LaunchKernel);
  bind("cuOccupancyMaxActiveBlocksPerMultiprocessor", api.OccupancyMaxActiveBlocksPerMultiprocessor);
  bind("cuFuncSetAttribute", api.FuncSetAttribute);
  bind("cuMemsetD8Async", api.MemsetD8Async);
  bind("cuStreamBeginCapture_v2", api.StreamBeginCapture);
  bind("cuStreamEndCapture", api.StreamEndCapture);
  bind("cuGraphLaunch", api.GraphLaunch);
  bind("cuGraphDestroy", api.GraphDestroy);
  bind("cuGraphExecDestroy", api.GraphExecDestroy);
  bind("cuGraphExecKernelNodeSetParams", api.GraphExecKernelNodeSetParams);
  bind_function(library, "cuStreamGetCaptureInfo_v2", api.StreamGetCaptureInfo);
  bind_function(library, "cuStreamGetCaptureInfo_v3", api.StreamGetCaptureInfo_v3);
  bind_function(library, "cuGraphInstantiateWithFlags", api.GraphInstantiate);
  bind_function(library, "cuLaunchKernelEx", api.LaunchKernelEx);
  bind_function(library, "cuTensorMapEncodeTiled", api.TensorMapEncodeTiled);
  bind_function(library, "cuTensorMapEncodeIm2col", api.TensorMapEncodeIm2col);
  bind_function(library, "cuFuncGetParamInfo", api.FuncGetParamInfo);
  if (!loader.why_not.empty()) return loader;

  const CUresult code = api.Init(0);
  if (code == CUDA_ERROR_NO_DEVICE)
    loader.why_not = "the CUDA driver is there, but no device that it can use";
  else if (code == CUDA_ERROR_STUB_LIBRARY)
    loader.why_not =
        "the libcuda.so.1 found first is the toolkit's stub, no driver: take its folder from the library path";
  else if (code != CUDA_SUCCESS)
    loader.why_not = fmt::format("the CUDA driver does not start: cuInit failed: {}", describe(api, code));
  return loader;
}

const Loader& loader() {
  static const Loader instance = open_loader();
  return instance;
}

bool is_lost(CUresult code) {
  return code == CUDA_ERROR_ECC_UNCORRECTABLE || code == CUDA_ERROR_MPS_CLIENT_TERMINATED ||
         code == CUDA_ERROR_NVLINK_UNCORRECTABLE || code == CUDA_ERROR_CONTAINED ||
         code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_LAUNCH_TIMEOUT ||
         code == CUDA_ERROR_CONTEXT_IS_DESTROYED || code == CUDA_ERROR_ASSERT ||
         (code >= CUDA_ERROR_HARDWARE_STACK_ERROR && code <= CUDA_ERROR_LAUNCH_FAILED) || code == CUDA_ERROR_UNKNOWN;
}

}  // namespace

const Api* find_api(std::string* why_not) {
  if (why_not) *why_not = loader().why_not;
  return loader().why_not.empty() ? &loader().api : nullptr;
}

const Api& api() {
  if (!loader().why_not.empty()) throw environment_error("CUDA cannot be used: " + loader().why_not);
  return loader().api;
}

int driver_version() {
  int version = 0;
  check("cuDriverGetVersion", api().DriverGetVersion(&version));
  return version;
}

std::string error_name(CUresult code) {
  return error_name(api(), code);
}

std::string error_name(const Api& api, CUresult code) {
  return describe(api, code) + (is_lost(code) ? "; the device is lost to this process: start it again" : "");
}

Error call_error(std::string_view call, CUresult code) {
  return Error(kind_of(code), fmt::format("{} failed: {}", call, error_name(code)));
}

}  // namespace omniconv::devices::cuda
