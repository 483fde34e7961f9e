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

// Kernels alone have a value: their second argument, a float.
struct Graph {
  std::vector<std::string> nodes;
  std::vector<float> values;
};

struct State {
  std::mutex mutex;
  std::vector<std::string> calls;
  std::map<std::string, int> counts;
  Graph* captured = nullptr;
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

// True where the call becomes a node of the graph that is being captured.
bool capture(const std::string& node, float value = 0) {
  if (!state().captured) return false;
  state().captured->nodes.push_back(node);
  state().captured->values.push_back(value);
  return true;
}
// Nodes are numbered from 1.
CUgraphNode node_of(std::size_t number) {
  return reinterpret_cast<CUgraphNode>(number);
}

float second_argument(void** arguments) {
  float value = 0;
  std::memcpy(&value, arguments[1], sizeof value);
  return value;
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
int take_count(const std::string& call) {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().counts[call], 0);
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
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN ? 232448
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT              ? 4
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK       ? 49152
           : attribute == CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH                ? 1
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
  const std::lock_guard lock(state().mutex);
  ++state().counts["cuCtxPushCurrent"];
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
  if (capture("copy")) return CUDA_SUCCESS;
  state().calls.push_back(fmt::format("cuMemcpyAsync {} bytes on {}", bytes, name_of(stream)));
  move_bytes(to, from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes, CUstream stream) {
  const std::lock_guard lock(state().mutex);
  if (capture("fill")) return CUDA_SUCCESS;
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
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  const std::lock_guard lock(state().mutex);
  if (flags == CU_EVENT_DISABLE_TIMING) ++state().counts["cuEventCreate without timing"];
  *event = handle_of<CUevent>(current_device());
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent) {
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent, CUstream) {
  const std::lock_guard lock(state().mutex);
  ++state().counts["cuEventRecord"];
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent) {
  const std::lock_guard lock(state().mutex);
  ++state().counts["cuEventQuery"];
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
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = begin("cuModuleLoadData")) return code;
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
// Its first argument is a buffer, and its second a float where it is captured.
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        CUstream stream, void** arguments, void**) {
  const std::lock_guard lock(state().mutex);
  if (state().captured) {
    capture("kernel", second_argument(arguments));
    return CUDA_SUCCESS;
  }
  CUdeviceptr address = 0;
  std::memcpy(&address, arguments[0], sizeof address);
  state().calls.push_back(fmt::format("cuLaunchKernel of memory of {} on {}", owner_of(address), name_of(stream)));
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, CUfunction, int, std::size_t) {
  *groups = 0;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction, void**, void**) {
  const std::lock_guard lock(state().mutex);
  std::string call =
      fmt::format("cuLaunchKernelEx {} x {} x {} groups", config->gridDimX, config->gridDimY, config->gridDimZ);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      call += fmt::format(", clusters of {} x {} x {}", attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                          attribute.value.clusterDim.z);
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      call += fmt::format(", overlap {}", attribute.value.programmaticStreamSerializationAllowed);
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      call += fmt::format(", cooperative {}", attribute.value.cooperative);
  }
  state().calls.push_back(call);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap*, int element, unsigned rank, void* address, const std::uint64_t* extents,
                                const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t*, int,
                                int swizzle, int promotion, int fill) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(
      fmt::format("cuTensorMapEncodeTiled element {} rank {} of {}: {} x {}, stride {}, box {} x {}, "
                  "swizzle {} promotion {} fill {}",
                  element, rank, owner_of(reinterpret_cast<CUdeviceptr>(address)), extents[0], extents[1], strides[0],
                  box[0], box[1], swizzle, promotion, fill));
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap*, int element, unsigned rank, void*, const std::uint64_t*,
                                 const std::uint64_t*, const int* lower, const int* upper, std::uint32_t channels,
                                 std::uint32_t pixels, const std::uint32_t* steps, int, int, int, int) {
  const std::lock_guard lock(state().mutex);
  state().calls.push_back(fmt::format(
      "cuTensorMapEncodeIm2col element {} rank {} corners {} {} to {} {}, {} channels, {} pixels, steps {} {}", element,
      rank, lower[0], lower[1], upper[0], upper[1], channels, pixels, steps[1], steps[2]));
  return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream, int mode) {
  const std::lock_guard lock(state().mutex);
  if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  state().captured = new Graph;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream, CUgraph* graph) {
  const std::lock_guard lock(state().mutex);
  *graph = reinterpret_cast<CUgraph>(std::exchange(state().captured, nullptr));
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v2(CUstream, int* status, std::uint64_t*, CUgraph*, const CUgraphNode** nodes,
                                   std::size_t* count) {
  static CUgraphNode last;
  const std::lock_guard lock(state().mutex);
  *status = state().captured ? 1 : 0;
  last = state().captured ? node_of(state().captured->nodes.size()) : nullptr;
  *nodes = &last;
  *count = state().captured ? 1 : 0;
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult code = begin("cuGraphInstantiate")) return code;
  const auto& captured = *reinterpret_cast<const Graph*>(graph);
  std::string call = "cuGraphInstantiate of";
  for (const std::string& node : captured.nodes) call += " " + node;
  state().calls.push_back(call);
  *made = reinterpret_cast<CUgraphExec>(new Graph(captured));
  return CUDA_SUCCESS;
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
  const std::lock_guard lock(state().mutex);
  const auto index = reinterpret_cast<std::size_t>(node) - 1;
  auto& values = reinterpret_cast<Graph*>(graph)->values;
  values.at(index) = second_argument(given->kernelParams);
  state().calls.push_back(fmt::format("cuGraphExecKernelNodeSetParams of node {}: {} groups of {}, {}", index,
                                      given->gridDimX, given->blockDimX, values[index]));
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  const std::lock_guard lock(state().mutex);
  std::string call = "cuGraphLaunch on " + name_of(stream) + ":";
  for (const float value : reinterpret_cast<const Graph*>(graph)->values) call += fmt::format(" {}", value);
  state().calls.push_back(call);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  const std::lock_guard lock(state().mutex);
  state().ends.push_back("cuGraphExecDestroy");
  delete reinterpret_cast<Graph*>(graph);
  return CUDA_SUCCESS;
}

}  // extern "C"
