// The part of OpenCL 1.2 that we call, declared by ourselves so that no OpenCL headers are needed to build, and the
// loader that is found at run time.
//
// Names, values and signatures are those of The OpenCL Specification 1.2 (Khronos, revision 19): chapter 4 (platform,
// devices, contexts), 5 (queues, buffers, programs, kernels, events), and its error codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "omniconv/error.h"

namespace omniconv::devices::opencl {

using cl_int = std::int32_t;
using cl_uint = std::uint32_t;
using cl_ulong = std::uint64_t;
using cl_bool = cl_uint;
using cl_bitfield = cl_ulong;
using cl_context_properties = std::intptr_t;

using cl_platform_id = struct cl_platform*;
using cl_device_id = struct cl_device*;
using cl_context = struct cl_context_object*;
using cl_command_queue = struct cl_command_queue_object*;
using cl_mem = struct cl_mem_object*;
using cl_program = struct cl_program_object*;
using cl_kernel = struct cl_kernel_object*;
using cl_event = struct cl_event_object*;

inline constexpr cl_int CL_SUCCESS = 0, CL_DEVICE_NOT_FOUND = -1, CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
                        CL_OUT_OF_RESOURCES = -5, CL_OUT_OF_HOST_MEMORY = -6, CL_PROFILING_INFO_NOT_AVAILABLE = -7,
                        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST = -14, CL_INVALID_COMMAND_QUEUE = -36,
                        CL_PLATFORM_NOT_FOUND_KHR = -1001;  // of the loader's extension cl_khr_icd
inline constexpr cl_uint CL_PLATFORM_NAME = 0x0902;
inline constexpr cl_bitfield CL_DEVICE_TYPE_GPU = 1 << 2, CL_DEVICE_TYPE_ALL = 0xFFFFFFFF, CL_FP_DENORM = 1;
inline constexpr cl_uint CL_DEVICE_TYPE = 0x1000, CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
                         CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004, CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
                         CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F, CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
                         CL_DEVICE_SINGLE_FP_CONFIG = 0x101B, CL_DEVICE_AVAILABLE = 0x1027,
                         CL_DEVICE_COMPILER_AVAILABLE = 0x1028, CL_DEVICE_NAME = 0x102B, CL_DRIVER_VERSION = 0x102D,
                         CL_DEVICE_PROFILE = 0x102E, CL_DEVICE_VERSION = 0x102F, CL_DEVICE_EXTENSIONS = 0x1030,
                         CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A;
// Of NVIDIA's extension cl_nv_device_attribute_query.
inline constexpr cl_uint CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,
                         CL_DEVICE_REGISTERS_PER_BLOCK_NV = 0x4002;
inline constexpr cl_uint CL_CONTEXT_DEVICES = 0x1081;
inline constexpr cl_context_properties CL_CONTEXT_PLATFORM = 0x1084;
inline constexpr cl_bitfield CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1 << 0, CL_QUEUE_PROFILING_ENABLE = 1 << 1;
inline constexpr cl_uint CL_QUEUE_CONTEXT = 0x1090, CL_QUEUE_DEVICE = 0x1091, CL_QUEUE_PROPERTIES = 0x1093;
inline constexpr cl_bitfield CL_MEM_READ_WRITE = 1 << 0, CL_MEM_WRITE_ONLY = 1 << 1, CL_MEM_READ_ONLY = 1 << 2,
                             CL_MEM_USE_HOST_PTR = 1 << 3, CL_MEM_ALLOC_HOST_PTR = 1 << 4;
inline constexpr cl_uint CL_MEM_TYPE = 0x1100, CL_MEM_FLAGS = 0x1101, CL_MEM_SIZE = 0x1102, CL_MEM_CONTEXT = 0x1106,
                         CL_MEM_ASSOCIATED_MEMOBJECT = 0x1107, CL_MEM_OFFSET = 0x1108, CL_MEM_OBJECT_BUFFER = 0x10F0;
inline constexpr cl_bitfield CL_MAP_READ = 1 << 0, CL_MAP_WRITE = 1 << 1;
inline constexpr cl_uint CL_PROGRAM_BINARY_SIZES = 0x1165, CL_PROGRAM_BINARIES = 0x1166, CL_PROGRAM_BUILD_LOG = 0x1183;
inline constexpr cl_uint CL_KERNEL_LOCAL_MEM_SIZE = 0x11B2;
inline constexpr cl_uint CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3;
inline constexpr cl_int CL_COMPLETE = 0;
inline constexpr cl_uint CL_PROFILING_COMMAND_START = 0x1282, CL_PROFILING_COMMAND_END = 0x1283;

// The functions, named without their prefix "cl".
struct Api {
  cl_int (*GetPlatformIDs)(cl_uint, cl_platform_id*, cl_uint*);
  cl_int (*GetPlatformInfo)(cl_platform_id, cl_uint, std::size_t, void*, std::size_t*);
  cl_int (*GetDeviceIDs)(cl_platform_id, cl_bitfield, cl_uint, cl_device_id*, cl_uint*);
  cl_int (*GetDeviceInfo)(cl_device_id, cl_uint, std::size_t, void*, std::size_t*);
  cl_context (*CreateContext)(const cl_context_properties*, cl_uint, const cl_device_id*,
                              void (*)(const char*, const void*, std::size_t, void*), void*, cl_int*);
  cl_int (*RetainContext)(cl_context);
  cl_int (*ReleaseContext)(cl_context);
  cl_int (*GetContextInfo)(cl_context, cl_uint, std::size_t, void*, std::size_t*);
  cl_command_queue (*CreateCommandQueue)(cl_context, cl_device_id, cl_bitfield, cl_int*);
  cl_int (*RetainCommandQueue)(cl_command_queue);
  cl_int (*ReleaseCommandQueue)(cl_command_queue);
  cl_int (*GetCommandQueueInfo)(cl_command_queue, cl_uint, std::size_t, void*, std::size_t*);
  cl_mem (*CreateBuffer)(cl_context, cl_bitfield, std::size_t, void*, cl_int*);
  cl_int (*RetainMemObject)(cl_mem);
  cl_int (*ReleaseMemObject)(cl_mem);
  cl_int (*GetMemObjectInfo)(cl_mem, cl_uint, std::size_t, void*, std::size_t*);
  cl_program (*CreateProgramWithSource)(cl_context, cl_uint, const char**, const std::size_t*, cl_int*);
  cl_program (*CreateProgramWithBinary)(cl_context, cl_uint, const cl_device_id*, const std::size_t*,
                                        const unsigned char**, cl_int*, cl_int*);
  cl_int (*BuildProgram)(cl_program, cl_uint, const cl_device_id*, const char*, void (*)(cl_program, void*), void*);
  cl_int (*GetProgramInfo)(cl_program, cl_uint, std::size_t, void*, std::size_t*);
  cl_int (*GetProgramBuildInfo)(cl_program, cl_device_id, cl_uint, std::size_t, void*, std::size_t*);
  cl_int (*ReleaseProgram)(cl_program);
  cl_kernel (*CreateKernel)(cl_program, const char*, cl_int*);
  cl_int (*GetKernelWorkGroupInfo)(cl_kernel, cl_device_id, cl_uint, std::size_t, void*, std::size_t*);
  cl_int (*ReleaseKernel)(cl_kernel);
  cl_int (*SetKernelArg)(cl_kernel, cl_uint, std::size_t, const void*);
  cl_int (*EnqueueNDRangeKernel)(cl_command_queue, cl_kernel, cl_uint, const std::size_t*, const std::size_t*,
                                 const std::size_t*, cl_uint, const cl_event*, cl_event*);
  cl_int (*EnqueueWriteBuffer)(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, const void*, cl_uint,
                               const cl_event*, cl_event*);
  cl_int (*EnqueueReadBuffer)(cl_command_queue, cl_mem, cl_bool, std::size_t, std::size_t, void*, cl_uint,
                              const cl_event*, cl_event*);
  cl_int (*EnqueueCopyBuffer)(cl_command_queue, cl_mem, cl_mem, std::size_t, std::size_t, std::size_t, cl_uint,
                              const cl_event*, cl_event*);
  cl_int (*EnqueueFillBuffer)(cl_command_queue, cl_mem, const void*, std::size_t, std::size_t, std::size_t, cl_uint,
                              const cl_event*, cl_event*);
  void* (*EnqueueMapBuffer)(cl_command_queue, cl_mem, cl_bool, cl_bitfield, std::size_t, std::size_t, cl_uint,
                            const cl_event*, cl_event*, cl_int*);
  cl_int (*EnqueueUnmapMemObject)(cl_command_queue, cl_mem, void*, cl_uint, const cl_event*, cl_event*);
  cl_int (*EnqueueMarkerWithWaitList)(cl_command_queue, cl_uint, const cl_event*, cl_event*);
  cl_int (*WaitForEvents)(cl_uint, const cl_event*);
  cl_int (*GetEventInfo)(cl_event, cl_uint, std::size_t, void*, std::size_t*);
  cl_int (*GetEventProfilingInfo)(cl_event, cl_uint, std::size_t, void*, std::size_t*);
  cl_int (*RetainEvent)(cl_event);
  cl_int (*ReleaseEvent)(cl_event);
  cl_int (*Flush)(cl_command_queue);
  cl_int (*Finish)(cl_command_queue);
};

// The loader of this process, opened at the first call; null where there is none, with the reason in `why_not`.
const Api* find_api(std::string* why_not = nullptr);
// The same where it is known to be there; throws the reason otherwise.
const Api& api();

// "CL_OUT_OF_RESOURCES (-5)", and that the device is lost where it is.
std::string error_name(cl_int code);
// Buffers may be given their memory at their first use, so that not only allocations lack it; NVIDIA's driver then
// answers with CL_OUT_OF_RESOURCES, too.
inline ErrorKind kind_of(cl_int code) {
  const bool memory =
      code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES || code == CL_OUT_OF_HOST_MEMORY;
  return memory ? ErrorKind::out_of_memory : ErrorKind::environment;
}
// "clFinish failed: CL_INVALID_VALUE (-30)", of the code's kind.
Error call_error(std::string_view call, cl_int code);
inline void check(std::string_view call, cl_int code) {
  if (code != CL_SUCCESS) throw call_error(call, code);
}

// Objects that we hold one reference of.
struct Release {
  void operator()(cl_context object) const noexcept { api().ReleaseContext(object); }
  void operator()(cl_command_queue object) const noexcept { api().ReleaseCommandQueue(object); }
  void operator()(cl_mem object) const noexcept { api().ReleaseMemObject(object); }
  void operator()(cl_program object) const noexcept { api().ReleaseProgram(object); }
  void operator()(cl_kernel object) const noexcept { api().ReleaseKernel(object); }
  void operator()(cl_event object) const noexcept { api().ReleaseEvent(object); }
};
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Release>;

// One more reference of an object that others hold too.
inline Owned<cl_mem> retain(cl_mem object) {
  check("clRetainMemObject", api().RetainMemObject(object));
  return Owned<cl_mem>(object);
}
inline Owned<cl_event> retain(cl_event object) {
  check("clRetainEvent", api().RetainEvent(object));
  return Owned<cl_event>(object);
}

}  // namespace omniconv::devices::opencl
