// A CUDA driver whose one device, of compute capability 9.0, is the processor: programs are those that the compiler
// beside it makes (nvrtc.cpp). All work is done when it is asked for, so that streams and events have nothing to do.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "devices/cuda/cuda_api.h"
#include "group.h"
#include "image.h"
#include "tensor_maps.h"

using namespace omniconv::devices::cuda;
using namespace omniconv::by_processor;

namespace {

constexpr std::size_t page = 4096, alignment = 256, memory_bytes = std::size_t{4} << 30;
constexpr int local_bytes = 227 << 10, declared_local_bytes = 48 << 10;

// As many as the device has that the text is for, or as a test says.
int compute_units() {
  const char* const asked = std::getenv("OMNICONV_BY_PROCESSOR_UNITS");
  return asked != nullptr ? std::atoi(asked) : 132;
}

struct Allocation {
  std::size_t bytes = 0;
  void* pages = nullptr;
  std::size_t page_bytes = 0;
};
struct Function {
  void (*call)(void**);
  std::size_t (*parameter)(std::size_t number);  // its bytes; 0 behind the last
  LocalMemory local;
};
struct Module {
  void* library;
  LocalMemory local;
  std::map<std::string, Function> functions;
};
struct State {
  std::recursive_mutex mutex;
  std::map<CUdeviceptr, Allocation> allocations;
  std::set<EncodedMap> maps;
};
State& state() {
  static State instance;
  return instance;
}

template <typename Handle>
Handle some_handle() {
  static int object;
  return reinterpret_cast<Handle>(&object);
}

// Memory whose end is followed by a page that nobody may touch.
CUdeviceptr allocate(std::size_t bytes) {
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment,
                    held = (rounded + page - 1) / page * page;
  void* const pages = mmap(nullptr, held + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return 0;
  mprotect(static_cast<std::byte*>(pages) + held, page, PROT_NONE);
  const auto address = reinterpret_cast<CUdeviceptr>(static_cast<std::byte*>(pages) + held - rounded);
  state().allocations[address] = {bytes, pages, held + page};
  return address;
}

const Allocation* find_allocation(CUdeviceptr address, CUdeviceptr* begin) {
  const auto after = state().allocations.upper_bound(address);
  if (after == state().allocations.begin()) return nullptr;
  const auto& [first, allocation] = *std::prev(after);
  *begin = first;
  return address < first + allocation.bytes ? &allocation : nullptr;
}

CUresult launch(const CUlaunchConfig& config, const Function& function, void** arguments) {
  if (config.sharedMemBytes > local_bytes) return CUDA_ERROR_INVALID_VALUE;
  run({.local = function.local,
       .local_bytes = config.sharedMemBytes,
       .items = {static_cast<int>(config.blockDimX), static_cast<int>(config.blockDimY),
                 static_cast<int>(config.blockDimZ)},
       .groups = {config.gridDimX, config.gridDimY, config.gridDimZ},
       .kernel = [&function, arguments] { function.call(arguments); }});
  return CUDA_SUCCESS;
}

EncodedMap encoded(int element, unsigned rank, void* begin, const std::uint64_t* extents, const std::uint64_t* strides,
                   int swizzle, int fill) {
  constexpr int bytes_of[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4};
  EncodedMap map{.begin = static_cast<std::byte*>(begin),
                 .rank = static_cast<int>(rank),
                 .element_bytes = bytes_of[element],
                 .swizzle = swizzle,
                 .fills_with_nan = fill != 0};
  std::copy_n(extents, rank, map.extents.begin());
  std::copy_n(strides, rank - 1, map.strides_bytes.begin());
  return map;
}
void keep(const EncodedMap& map, CUtensorMap* to) {
  const std::lock_guard lock(state().mutex);
  const EncodedMap* const kept = &*state().maps.insert(map).first;
  std::memcpy(to, &kept, sizeof kept);
}
// Of a copy's box, as the device demands it.
bool is_line_right(std::int64_t bytes, int swizzle) {
  return bytes % 16 == 0 && (swizzle == 0 || bytes <= 16 << swizzle);
}
bool are_strides_right(const EncodedMap& map) {
  bool all = reinterpret_cast<std::uintptr_t>(map.begin) % 16 == 0;
  for (std::size_t d = 0; d + 1 < static_cast<std::size_t>(map.rank); ++d) all = all && map.strides_bytes[d] % 16 == 0;
  return all;
}

}  // namespace

extern "C" {

CUresult cuGetErrorName(CUresult, const char** name) {
  *name = "an error";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "of the driver by a processor";
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
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int index) {
  *device = index;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "the processor, as a device of compute capability 9.0", static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR               ? 9
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN    ? local_bytes
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR ? local_bytes + 1024
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT                 ? compute_units()
           : attribute == CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK          ? declared_local_bytes
                                                                                   : 0;
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = memory_bytes;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  *context = some_handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext) {
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  *context = some_handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  *free = *total = memory_bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  *address = bytes > memory_bytes ? 0 : allocate(bytes);
  return *address == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().allocations.find(address);
  if (found == state().allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  munmap(found->second.pages, found->second.page_bytes);
  state().allocations.erase(found);
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* value, int attribute, CUdeviceptr address) {
  const std::lock_guard lock(state().mutex);
  CUdeviceptr begin = 0;
  const Allocation* const found = find_allocation(address, &begin);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  const auto answer = [value](const auto& known) {
    std::memcpy(value, &known, sizeof known);
    return CUDA_SUCCESS;
  };
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return answer(CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return answer(0);
    case CU_POINTER_ATTRIBUTE_CONTEXT: return answer(some_handle<CUcontext>());
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return answer(begin);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return answer(found->bytes);
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
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes, CUstream) {
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t bytes, CUstream stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  *can = 0;
  return CUDA_SUCCESS;
}
CUresult cuCtxEnablePeerAccess(CUcontext, unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = some_handle<CUstream>();
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream) {
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx(CUstream, CUcontext* context) {
  *context = some_handle<CUcontext>();
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = some_handle<CUevent>();
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

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  std::string path = (std::filesystem::temp_directory_path() / "omniconv-text-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) return CUDA_ERROR_UNKNOWN;
  const std::string_view library = library_of(image);
  const bool is_written = write(file, library.data(), library.size()) == static_cast<ssize_t>(library.size());
  close(file);
  void* const opened = is_written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  unlink(path.c_str());
  if (opened == nullptr) return CUDA_ERROR_UNKNOWN;
  *static_cast<const Engine**>(dlsym(opened, "omniconv_engine")) = &engine();
  auto* const of_launch = static_cast<std::byte*>(dlsym(opened, "omniconv_launch_local"));
  auto *const begin = static_cast<std::byte*const*>(dlsym(opened, "omniconv_local_begin")),
              *const end = static_cast<std::byte*const*>(dlsym(opened, "omniconv_local_end"));
  *module = reinterpret_cast<CUmodule>(
      new Module{.library = opened, .local = {.begin = *begin, .end = *end, .of_launch = of_launch}, .functions = {}});
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule module) {
  auto* const loaded = reinterpret_cast<Module*>(module);
  dlclose(loaded->library);
  delete loaded;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const std::lock_guard lock(state().mutex);
  auto& loaded = *reinterpret_cast<Module*>(module);
  const auto find = [&](std::string prefix) { return dlsym(loaded.library, (prefix + name).c_str()); };
  const Function found{reinterpret_cast<void (*)(void**)>(find(call_prefix)),
                       reinterpret_cast<std::size_t (*)(std::size_t)>(find(parameter_prefix)), loaded.local};
  if (found.call == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(&(loaded.functions[name] = found));
  return CUDA_SUCCESS;
}
CUresult cuFuncGetParamInfo(CUfunction function, std::size_t number, std::size_t* offset, std::size_t* bytes) {
  *offset = 0;
  *bytes = reinterpret_cast<const Function*>(function)->parameter(number);
  return *bytes == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, int, int) {
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void**) {
  const std::lock_guard lock(state().mutex);
  return launch(*config, *reinterpret_cast<const Function*>(function), arguments);
}
CUresult cuLaunchKernel(CUfunction function, unsigned groups_x, unsigned groups_y, unsigned groups_z, unsigned items_x,
                        unsigned items_y, unsigned items_z, unsigned local, CUstream stream, void** arguments,
                        void** extra) {
  const CUlaunchConfig config{groups_x, groups_y, groups_z, items_x, items_y, items_z, local, stream, nullptr, 0};
  return cuLaunchKernelEx(&config, function, arguments, extra);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* groups, CUfunction, int, std::size_t) {
  *groups = 1;
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap* to, int element, unsigned rank, void* begin, const std::uint64_t* extents,
                                const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t*, int,
                                int swizzle, int, int fill) {
  EncodedMap map = encoded(element, rank, begin, extents, strides, swizzle, fill);
  std::copy_n(box, rank, map.box.begin());
  for (unsigned d = 0; d < rank; ++d)
    if (box[d] == 0 || box[d] > 256) return CUDA_ERROR_INVALID_VALUE;
  if (!are_strides_right(map) || !is_line_right(map.box[0] * map.element_bytes, swizzle))
    return CUDA_ERROR_INVALID_VALUE;
  keep(map, to);
  return CUDA_SUCCESS;
}
CUresult cuTensorMapEncodeIm2col(CUtensorMap* to, int element, unsigned rank, void* begin, const std::uint64_t* extents,
                                 const std::uint64_t* strides, const int* lower, const int* upper,
                                 std::uint32_t channels, std::uint32_t pixels, const std::uint32_t* steps, int,
                                 int swizzle, int, int fill) {
  EncodedMap map = encoded(element, rank, begin, extents, strides, swizzle, fill);
  map.is_im2col = true;
  std::copy_n(lower, rank - 2, map.lower.begin());
  std::copy_n(upper, rank - 2, map.upper.begin());
  std::copy_n(steps, rank, map.steps.begin());
  map.channels = static_cast<int>(channels), map.pixels = static_cast<int>(pixels);
  const auto is_corner = [](int at) { return at >= -128 && at <= 127; };
  if (channels > 256 || pixels > 1024 || !std::all_of(map.lower.begin(), map.lower.end(), is_corner) ||
      !std::all_of(map.upper.begin(), map.upper.end(), is_corner) || !are_strides_right(map) ||
      !is_line_right(std::int64_t{map.channels} * map.element_bytes, swizzle))
    return CUDA_ERROR_INVALID_VALUE;
  keep(map, to);
  return CUDA_SUCCESS;
}

// Without cuGraphInstantiate nobody captures: recordings submit their steps again.
CUresult cuStreamBeginCapture_v2(CUstream, int) {
  return CUDA_ERROR_UNKNOWN;
}
CUresult cuStreamEndCapture(CUstream, CUgraph*) {
  return CUDA_ERROR_UNKNOWN;
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*) {
  return CUDA_ERROR_UNKNOWN;
}
CUresult cuGraphLaunch(CUgraphExec, CUstream) {
  return CUDA_ERROR_UNKNOWN;
}
CUresult cuGraphDestroy(CUgraph) {
  return CUDA_ERROR_UNKNOWN;
}
CUresult cuGraphExecDestroy(CUgraphExec) {
  return CUDA_ERROR_UNKNOWN;
}

}  // extern "C"
