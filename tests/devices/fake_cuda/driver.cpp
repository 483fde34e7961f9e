#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "devices/cuda/cuda_api.h"
#include "fake_cuda.h"

using namespace omniconv::devices::cuda;

namespace {

constexpr CUresult already_enabled = 704;

struct State {
  std::mutex mutex;
  std::vector<std::string> calls;
  bool peers = true;
  std::string failing;
  CUresult failure = CUDA_SUCCESS;
  std::map<CUdeviceptr, int> owners;
  bool enabled[2][2] = {};
};

State& state() {
  static State instance;
  return instance;
}

// Objects are the number of their device, plus one.
template <typename Handle>
Handle handle_of(int device) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(device + 1));
}
template <typename Handle>
int device_of(Handle handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
}

thread_local std::vector<CUcontext> current;
int current_device() {
  return device_of(current.back());
}

int owner_of(CUdeviceptr address) {
  const auto after = state().owners.upper_bound(address);
  return after == state().owners.begin() ? -1 : std::prev(after)->second;
}

// CUDA_SUCCESS, unless this call is to fail.
CUresult begin(const char* call) {
  if (state().failing != call) return CUDA_SUCCESS;
  state().failing.clear();
  return state().failure;
}

void move_bytes(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}

}  // namespace

namespace fake_cuda {

std::vector<std::string> take_calls() {
  const std::lock_guard lock(state().mutex);
  return std::move(state().calls);
}
void set_peers(bool reach) {
  const std::lock_guard lock(state().mutex);
  state().peers = reach;
}
void fail_next(const std::string& call, int code) {
  const std::lock_guard lock(state().mutex);
  state().failing = call;
  state().failure = code;
}

}  // namespace fake_cuda

extern "C" {

CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "CUDA_ERROR_NAME";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "a text";
  return CUDA_SUCCESS;
}
CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 2;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "fake", static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR      ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT        ? 4
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK ? 49152
                                                                          : 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{1} << 30;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = handle_of<CUcontext>(device);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  current.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  *context = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = std::size_t{1} << 30;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = begin("cuMemAlloc")) return code;
  *address = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));
  state().owners[*address] = current_device();
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  state().owners.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* memory) {
  std::free(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister_v2(void*, std::size_t, unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuMemHostUnregister(void*) {
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned) {
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuMemcpyAsync {} bytes on {}", bytes, device_of(stream)));
  move_bytes(to, from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t bytes, CUstream stream) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuMemcpyPeerAsync {} bytes {} > {} on {}", bytes, device_of(from_context),
                                      device_of(to_context), device_of(stream)));
  if (const CUresult code = begin("cuMemcpyPeerAsync")) return code;
  if (owner_of(to) != device_of(to_context) || owner_of(from) != device_of(from_context))
    return CUDA_ERROR_INVALID_VALUE;
  move_bytes(to, from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  const std::lock_guard lock(state().mutex);
  *can = state().peers;
  return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuCtxEnablePeerAccess {} to {}", current_device(), device_of(peer)));
  bool& enabled = state().enabled[current_device()][device_of(peer)];
  return std::exchange(enabled, true) ? already_enabled : CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = handle_of<CUstream>(current_device());
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream) {
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) {
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuStreamWaitEvent of {} on {}", device_of(event), device_of(stream)));
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = handle_of<CUevent>(current_device());
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent) {
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent, CUstream) {
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent) {
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) {
  return CUDA_SUCCESS;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 1;
  return CUDA_SUCCESS;
}
CUresult cuModuleLoadData(CUmodule*, const void*) {
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuModuleUnload(CUmodule) {
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char*) {
  return CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void**, void**) {
  return CUDA_ERROR_INVALID_VALUE;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, CUfunction, int, std::size_t) {
  *groups = 0;
  return CUDA_SUCCESS;
}

}  // extern "C"
