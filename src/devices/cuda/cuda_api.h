// The part of the CUDA driver API that we call, declared by ourselves so that no CUDA is needed to build, and the
// driver's library that is found at run time.
//
// Names, values and signatures are those of NVIDIA's CUDA Driver API Reference Manual (12.x and 13.x); functions carry
// the suffix, such as _v2, of the version that the manual's header means by the plain name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "omniconv/error.h"

namespace omniconv::devices::cuda {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphNode = struct CUgraphNode_st*;
using CUgraphExec = struct CUgraphExec_st*;

inline constexpr CUresult CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2,
                          CUDA_ERROR_STUB_LIBRARY = 34, CUDA_ERROR_NO_DEVICE = 100, CUDA_ERROR_ECC_UNCORRECTABLE = 214,
                          CUDA_ERROR_NVLINK_UNCORRECTABLE = 220, CUDA_ERROR_CONTAINED = 226, CUDA_ERROR_NOT_FOUND = 500,
                          CUDA_ERROR_NOT_READY = 600, CUDA_ERROR_ILLEGAL_ADDRESS = 700, CUDA_ERROR_LAUNCH_TIMEOUT = 702,
                          CUDA_ERROR_CONTEXT_IS_DESTROYED = 709, CUDA_ERROR_ASSERT = 710,
                          CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712, CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
                          CUDA_ERROR_LAUNCH_FAILED = 719, CUDA_ERROR_MPS_CLIENT_TERMINATED = 809,
                          CUDA_ERROR_UNKNOWN = 999;
inline constexpr int CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
                     CU_DEVICE_ATTRIBUTE_COMPUTE_MODE = 20, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
                     CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
                     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
                     CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
                     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;
inline constexpr int CU_COMPUTEMODE_PROHIBITED = 2;
inline constexpr unsigned CU_STREAM_NON_BLOCKING = 1, CU_EVENT_DEFAULT = 0, CU_EVENT_DISABLE_TIMING = 2;
inline constexpr int CU_STREAM_CAPTURE_MODE_RELAXED = 2;
inline constexpr int CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
inline constexpr int CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
                     CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6;
inline constexpr unsigned CU_MEMHOSTALLOC_PORTABLE = 1, CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE = 2;
inline constexpr int CU_POINTER_ATTRIBUTE_CONTEXT = 1, CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
                     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
                     CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12;
inline constexpr unsigned CU_MEMHOSTREGISTER_PORTABLE = 1, CU_MEMHOSTREGISTER_DEVICEMAP = 2;

struct CUlaunchAttribute {
  int id;
  union alignas(8) {
    char pad[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed, cooperative;
  } value;
};
struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

struct CUDA_KERNEL_NODE_PARAMS_v1 {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
};
struct CUgraphEdgeData;

struct alignas(128) CUtensorMap {
  std::uint64_t opaque[16];
};

// The functions, named without their prefix "cu".
struct Api {
  CUresult (*GetErrorName)(CUresult, const char**);
  CUresult (*GetErrorString)(CUresult, const char**);
  CUresult (*Init)(unsigned);
  CUresult (*DriverGetVersion)(int*);
  CUresult (*DeviceGetCount)(int*);
  CUresult (*DeviceGet)(CUdevice*, int);
  CUresult (*DeviceGetName)(char*, int, CUdevice);
  CUresult (*DeviceGetAttribute)(int*, int, CUdevice);
  CUresult (*DeviceTotalMem)(std::size_t*, CUdevice);
  CUresult (*DevicePrimaryCtxRetain)(CUcontext*, CUdevice);
  CUresult (*DevicePrimaryCtxRelease)(CUdevice);
  CUresult (*CtxPushCurrent)(CUcontext);
  CUresult (*CtxPopCurrent)(CUcontext*);
  CUresult (*MemGetInfo)(std::size_t*, std::size_t*);
  CUresult (*MemAlloc)(CUdeviceptr*, std::size_t);
  CUresult (*MemFree)(CUdeviceptr);
  CUresult (*PointerGetAttribute)(void*, int, CUdeviceptr);
  CUresult (*MemHostAlloc)(void**, std::size_t, unsigned);
  CUresult (*MemFreeHost)(void*);
  CUresult (*MemHostRegister)(void*, std::size_t, unsigned);
  CUresult (*MemHostUnregister)(void*);
  CUresult (*MemHostGetDevicePointer)(CUdeviceptr*, void*, unsigned);
  CUresult (*MemcpyHtoDAsync)(CUdeviceptr, const void*, std::size_t, CUstream);
  CUresult (*MemcpyDtoHAsync)(void*, CUdeviceptr, std::size_t, CUstream);
  CUresult (*MemcpyAsync)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
  CUresult (*MemcpyPeerAsync)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream);
  CUresult (*DeviceCanAccessPeer)(int*, CUdevice, CUdevice);
  CUresult (*CtxEnablePeerAccess)(CUcontext, unsigned);
  CUresult (*StreamCreate)(CUstream*, unsigned);
  CUresult (*StreamDestroy)(CUstream);
  CUresult (*StreamGetCtx)(CUstream, CUcontext*);
  CUresult (*StreamWaitEvent)(CUstream, CUevent, unsigned);
  CUresult (*EventCreate)(CUevent*, unsigned);
  CUresult (*EventDestroy)(CUevent);
  CUresult (*EventRecord)(CUevent, CUstream);
  CUresult (*EventQuery)(CUevent);
  CUresult (*EventSynchronize)(CUevent);
  CUresult (*EventElapsedTime)(float*, CUevent, CUevent);
  CUresult (*ModuleLoadData)(CUmodule*, const void*);
  CUresult (*ModuleUnload)(CUmodule);
  CUresult (*ModuleGetFunction)(CUfunction*, CUmodule, const char*);
  CUresult (*LaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                           void**, void**);
  CUresult (*OccupancyMaxActiveBlocksPerMultiprocessor)(int*, CUfunction, int, std::size_t);
  CUresult (*FuncSetAttribute)(CUfunction, int, int);
  CUresult (*MemsetD8Async)(CUdeviceptr, unsigned char, std::size_t, CUstream);
  CUresult (*StreamBeginCapture)(CUstream, int);
  CUresult (*StreamEndCapture)(CUstream, CUgraph*);
  CUresult (*GraphLaunch)(CUgraphExec, CUstream);
  CUresult (*GraphDestroy)(CUgraph);
  CUresult (*GraphExecDestroy)(CUgraphExec);
  CUresult (*GraphExecKernelNodeSetParams)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS_v1*);
  // Null in older drivers than 11.3 and, of the version whose answer has edges, 12.3,
  CUresult (*StreamGetCaptureInfo)(CUstream, int*, std::uint64_t*, CUgraph*, const CUgraphNode**, std::size_t*);
  CUresult (*StreamGetCaptureInfo_v3)(CUstream, int*, std::uint64_t*, CUgraph*, const CUgraphNode**,
                                      const CUgraphEdgeData**, std::size_t*);
  // 11.4,
  CUresult (*GraphInstantiate)(CUgraphExec*, CUgraph, unsigned long long);
  // 11.8,
  CUresult (*LaunchKernelEx)(const CUlaunchConfig*, CUfunction, void**, void**);
  // 12.0: enumerations are passed as int,
  CUresult (*TensorMapEncodeTiled)(CUtensorMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                                   const std::uint32_t*, const std::uint32_t*, int, int, int, int);
  CUresult (*TensorMapEncodeIm2col)(CUtensorMap*, int, unsigned, void*, const std::uint64_t*, const std::uint64_t*,
                                    const int*, const int*, std::uint32_t, std::uint32_t, const std::uint32_t*, int,
                                    int, int, int);
  // and 12.4.
  CUresult (*FuncGetParamInfo)(CUfunction, std::size_t, std::size_t*, std::size_t*);
};

// The driver of this process, opened and started at the first call; null where there is none, with the reason in
// `why_not`.
const Api* find_api(std::string* why_not = nullptr);
// The same where it is known to be there; throws the reason otherwise.
const Api& api();

// 12040 for 12.4.
int driver_version();

// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered", and that the device is lost where it
// is: after some errors nothing works on it any more in this process.
std::string error_name(CUresult code);
std::string error_name(const Api& api, CUresult code);
inline ErrorKind kind_of(CUresult code) {
  return code == CUDA_ERROR_OUT_OF_MEMORY ? ErrorKind::out_of_memory : ErrorKind::environment;
}
// "cuEventSynchronize failed: CUDA_ERROR_...", of the code's kind.
Error call_error(std::string_view call, CUresult code);
inline void check(std::string_view call, CUresult code) {
  if (code != CUDA_SUCCESS) throw call_error(call, code);
}

// Makes the context current on this thread, and what was current before so again at its end.
class Current {
 public:
  explicit Current(CUcontext context) { check("cuCtxPushCurrent", api().CtxPushCurrent(context)); }
  ~Current() {
    CUcontext popped = nullptr;
    api().CtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
};

}  // namespace omniconv::devices::cuda
