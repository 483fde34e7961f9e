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

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  unsigned type = CU_MEMORYTYPE_DEVICE;
  bool of_primary = true;
};

struct State {
  std::mutex mutex;
  std::vector<std::string> calls;
  bool peers = true;
  std::string failing;
  CUresult failure = CUDA_SUCCESS;
  std::vector<std::string> ends;
  std::map<CUdeviceptr, Allocation> allocations;
  bool enabled[2][2] = {};
};

State& state() {
  static State instance;
  return instance;
}

// Objects are the number of their device, plus one, and of the object among the test's own, or 0.
template <typename Handle>
Handle handle_of(int device, int number = 0) {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>((device + 1) << 8 | number));
}
template <typename Handle>
int device_of(Handle handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle) >> 8) - 1;
}
constexpr int foreign = 9;  // the number of a context that is not its device's primary one, and of its streams
// "1", or "1#7" of the test's own.
std::string name_of(CUstream stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(stream) & 255;
  if (!stream) return "default";
  return number == 0 ? std::to_string(device_of(stream)) : fmt::format("{}#{}", device_of(stream), number);
}

thread_local std::vector<CUcontext> current;
int current_device() {
  return device_of(current.back());
}

const Allocation* find_allocation(CUdeviceptr address, CUdeviceptr* begin = nullptr) {
  const auto after = state().allocations.upper_bound(address);
  if (after == state().allocations.begin()) return nullptr;
  const auto& [first, allocation] = *std::prev(after);
  if (begin) *begin = first;
  return address < first + allocation.bytes ? &allocation : nullptr;
}
int owner_of(CUdeviceptr address) {
  const Allocation* const found = find_allocation(address);
  return found ? found->device : -1;
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
std::vector<std::string> take_ends() {
  const std::lock_guard lock(state().mutex);
  return std::move(state().ends);
}
void add_memory(void* memory, std::size_t bytes, int device, bool of_primary) {
  const std::lock_guard lock(state().mutex);
  state().allocations[reinterpret_cast<CUdeviceptr>(memory)] = {bytes, device, CU_MEMORYTYPE_DEVICE, of_primary};
}
void add_locked_memory(void* memory, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  state().allocations[reinterpret_cast<CUdeviceptr>(memory)] = {bytes, 0, CU_MEMORYTYPE_HOST, true};
}
void* make_stream(int device, bool of_primary) {
  return handle_of<void*>(device, of_primary ? 7 : foreign);
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
  state().allocations[*address] = {bytes, current_device()};
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  state().ends.push_back("cuMemFree");
  state().allocations.erase(address);
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  CUdeviceptr begin = 0;
  const Allocation* const found = find_allocation(address, &begin);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  const auto answer = [value](const auto& known) { std::memcpy(value, &known, sizeof known); };
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: answer(found->type); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: answer(found->device); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      answer(handle_of<CUcontext>(found->device, found->of_primary ? 0 : foreign));
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: answer(begin); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: answer(found->bytes); return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
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
  state().calls.push_back(fmt::format("cuMemcpyAsync {} bytes on {}", bytes, name_of(stream)));
  move_bytes(to, from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes, CUstream stream) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuMemsetD8Async {} bytes on {}", bytes, name_of(stream)));
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t bytes, CUstream stream) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuMemcpyPeerAsync {} bytes {} > {} on {}", bytes, device_of(from_context),
                                      device_of(to_context), name_of(stream)));
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
CUresult cuStreamDestroy_v2(CUstream stream) {
  const std::lock_guard lock(state().mutex);
  state().ends.push_back("cuStreamDestroy of " + name_of(stream));
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  const bool is_foreign = (reinterpret_cast<std::uintptr_t>(stream) & 255) == foreign;
  *context = stream ? handle_of<CUcontext>(device_of(stream), is_foreign ? foreign : 0) : current.back();
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuStreamWaitEvent of {} on {}", device_of(event), name_of(stream)));
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
CUresult cuModuleLoadData(CUmodule* module, const void*) {
  *module = handle_of<CUmodule>(current_device());
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char*) {
  *function = handle_of<CUfunction>(device_of(module));
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, int attribute, int value) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format("cuFuncSetAttribute {} to {}", attribute, value));
  return CUDA_SUCCESS;
}
// Its first argument is a buffer.
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** arguments, void**) {
  const std::lock_guard lock(state().mutex);
  CUdeviceptr address = 0;
  std::memcpy(&address, arguments[0], sizeof address);
  state().calls.push_back(fmt::format("cuLaunchKernel of memory of {} on {}", owner_of(address), name_of(stream)));
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, CUfunction, int, std::size_t) {
  *groups = 0;
  return CUDA_SUCCESS;
}

}  // extern "C"
