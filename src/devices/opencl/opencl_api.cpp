#include "devices/opencl/opencl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace omniconv::devices::opencl {
namespace {

struct Loader {
  Api api{};
  std::string why_not;  // empty: usable
};

// The library stays open for good: drivers leave threads behind that run in it.
Loader open_loader() {
  Loader loader;
  constexpr const char* names[] = {"libOpenCL.so.1", "libOpenCL.so"};
  void* library = nullptr;
  const char* found = nullptr;
  std::string first_reason;
  for (const char* name : names) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    found = name;
    if (library) break;
    const char* reason = dlerror();
    if (first_reason.empty()) first_reason = reason ? reason : "no reason given";
  }
  if (!library) {
    loader.why_not = fmt::format("no OpenCL loader ({}); Debian's package is ocl-icd-libopencl1", first_reason);
    return loader;
  }
  const auto bind = [&](const char* name, auto& function) {
    void* symbol = dlsym(library, name);
    if (!symbol && loader.why_not.empty())
      loader.why_not = fmt::format("{} has no {}: OpenCL 1.2 is needed", found, name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  Api& api = loader.api;
  bind("clGetPlatformIDs", api.GetPlatformIDs);
  bind("clGetPlatformInfo", api.GetPlatformInfo);
  bind("clGetDeviceIDs", api.GetDeviceIDs);
  bind("clGetDeviceInfo", api.GetDeviceInfo);
  bind("clCreateContext", api.CreateContext);
  bind("clRetainContext", api.RetainContext);
  bind("clReleaseContext", api.ReleaseContext);
  bind("clGetContextInfo", api.GetContextInfo);
  bind("clCreateCommandQueue", api.CreateCommandQueue);
  bind("clRetainCommandQueue", api.RetainCommandQueue);
  bind("clReleaseCommandQueue", api.ReleaseCommandQueue);
  bind("clGetCommandQueueInfo", api.GetCommandQueueInfo);
  bind("clCreateBuffer", api.CreateBuffer);
  bind("clRetainMemObject", api.RetainMemObject);
  bind("clReleaseMemObject", api.ReleaseMemObject);
  bind("clGetMemObjectInfo", api.GetMemObjectInfo);
  bind("clCreateProgramWithSource", api.CreateProgramWithSource);
  bind("clCreateProgramWithBinary", api.CreateProgramWithBinary);
  bind("clBuildProgram", api.BuildProgram);
  bind("clGetProgramInfo", api.GetProgramInfo);
  bind("clGetProgramBuildInfo", api.GetProgramBuildInfo);
  bind("clReleaseProgram", api.ReleaseProgram);
  bind("clCreateKernel", api.CreateKernel);
  bind("clGetKernelWorkGroupInfo", api.GetKernelWorkGroupInfo);
  bind("clReleaseKernel", api.ReleaseKernel);
  bind("clSetKernelArg", api.SetKernelArg);
  bind("clEnqueueNDRangeKernel", api.EnqueueNDRangeKernel);
  bind("clEnqueueWriteBuffer", api.EnqueueWriteBuffer);
  bind("clEnqueueReadBuffer", api.EnqueueReadBuffer);
  bind("clEnqueueCopyBuffer", api.EnqueueCopyBuffer);
  bind("clEnqueueFillBuffer", api.EnqueueFillBuffer);
  bind("clEnqueueMapBuffer", api.EnqueueMapBuffer);
  bind("clEnqueueUnmapMemObject", api.EnqueueUnmapMemObject);
  bind("clEnqueueMarkerWithWaitList", api.EnqueueMarkerWithWaitList);
  bind("clWaitForEvents", api.WaitForEvents);
  bind("clGetEventInfo", api.GetEventInfo);
  bind("clGetEventProfilingInfo", api.GetEventProfilingInfo);
  bind("clRetainEvent", api.RetainEvent);
  bind("clReleaseEvent", api.ReleaseEvent);
  bind("clFlush", api.Flush);
  bind("clFinish", api.Finish);
  return loader;
}

const Loader& loader() {
  static const Loader instance = open_loader();
  return instance;
}

// A number that no specification has.
constexpr cl_int illegal_access = -9999;

const char* error_text(cl_int code) {
  switch (code) {
    case 0: return "CL_SUCCESS";
    case -1: return "CL_DEVICE_NOT_FOUND";
    case -2: return "CL_DEVICE_NOT_AVAILABLE";
    case -3: return "CL_COMPILER_NOT_AVAILABLE";
    case -4: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case -5: return "CL_OUT_OF_RESOURCES";
    case -6: return "CL_OUT_OF_HOST_MEMORY";
    case -7: return "CL_PROFILING_INFO_NOT_AVAILABLE";
    case -8: return "CL_MEM_COPY_OVERLAP";
    case -11: return "CL_BUILD_PROGRAM_FAILURE";
    case -12: return "CL_MAP_FAILURE";
    case -13: return "CL_MISALIGNED_SUB_BUFFER_OFFSET";
    case -14: return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case -15: return "CL_COMPILE_PROGRAM_FAILURE";
    case -16: return "CL_LINKER_NOT_AVAILABLE";
    case -17: return "CL_LINK_PROGRAM_FAILURE";
    case -30: return "CL_INVALID_VALUE";
    case -31: return "CL_INVALID_DEVICE_TYPE";
    case -32: return "CL_INVALID_PLATFORM";
    case -33: return "CL_INVALID_DEVICE";
    case -34: return "CL_INVALID_CONTEXT";
    case -35: return "CL_INVALID_QUEUE_PROPERTIES";
    case CL_INVALID_COMMAND_QUEUE: return "CL_INVALID_COMMAND_QUEUE";
    case -37: return "CL_INVALID_HOST_PTR";
    case -38: return "CL_INVALID_MEM_OBJECT";
    case -42: return "CL_INVALID_BINARY";
    case -43: return "CL_INVALID_BUILD_OPTIONS";
    case -44: return "CL_INVALID_PROGRAM";
    case -45: return "CL_INVALID_PROGRAM_EXECUTABLE";
    case -46: return "CL_INVALID_KERNEL_NAME";
    case -47: return "CL_INVALID_KERNEL_DEFINITION";
    case -48: return "CL_INVALID_KERNEL";
    case -49: return "CL_INVALID_ARG_INDEX";
    case -50: return "CL_INVALID_ARG_VALUE";
    case -51: return "CL_INVALID_ARG_SIZE";
    case -52: return "CL_INVALID_KERNEL_ARGS";
    case -53: return "CL_INVALID_WORK_DIMENSION";
    case -54: return "CL_INVALID_WORK_GROUP_SIZE";
    case -55: return "CL_INVALID_WORK_ITEM_SIZE";
    case -56: return "CL_INVALID_GLOBAL_OFFSET";
    case -57: return "CL_INVALID_EVENT_WAIT_LIST";
    case -58: return "CL_INVALID_EVENT";
    case -59: return "CL_INVALID_OPERATION";
    case -61: return "CL_INVALID_BUFFER_SIZE";
    case -63: return "CL_INVALID_GLOBAL_WORK_SIZE";
    case -64: return "CL_INVALID_PROPERTY";
    case -66: return "CL_INVALID_COMPILER_OPTIONS";
    case CL_PLATFORM_NOT_FOUND_KHR: return "CL_PLATFORM_NOT_FOUND_KHR";
    case illegal_access: return "an illegal access, in NVIDIA's numbers";
    default: return "an error of this driver's own";
  }
}

// What a queue of ours says when its device is gone: it was valid when it was made.
bool is_lost(cl_int code) {
  return code == CL_INVALID_COMMAND_QUEUE || code == illegal_access;
}

}  // namespace

const Api* find_api(std::string* why_not) {
  if (why_not) *why_not = loader().why_not;
  return loader().why_not.empty() ? &loader().api : nullptr;
}

const Api& api() {
  if (!loader().why_not.empty()) throw environment_error("OpenCL cannot be used: " + loader().why_not);
  return loader().api;
}

std::string error_name(cl_int code) {
  return fmt::format("{} ({}){}", error_text(code), code,
                     is_lost(code) ? "; the device is lost to this process: start it again" : "");
}

Error call_error(std::string_view call, cl_int code) {
  return Error(kind_of(code), fmt::format("{} failed: {}", call, error_name(code)));
}

}  // namespace omniconv::devices::opencl
