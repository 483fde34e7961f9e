// A convolution among the caller's own OpenCL commands: in his buffers, on his queue.
//
// Without an OpenCL device it says so, and ends with status 77.
#include <omniconv/conv2d.h>
#include <omniconv/error.h>
#include <omniconv/opencl.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "library.h"
#include "skipped.h"

namespace {

using namespace omniconv;

// The part of OpenCL that is used, as <CL/cl.h> has it.
using cl_context = struct context*;
using cl_device_id = struct device*;
using cl_mem = struct memory*;
using cl_queue = struct queue*;
using cl_platform_id = struct platform*;
constexpr std::uint32_t yes = 1;
constexpr std::uint64_t all_devices = 0xFFFFFFFF, read_write = 1;
struct OpenCl {
  Library library{"libOpenCL.so.1"};
  int (*GetPlatformIDs)(std::uint32_t, cl_platform_id*, std::uint32_t*) = library["clGetPlatformIDs"];
  int (*GetDeviceIDs)(cl_platform_id, std::uint64_t, std::uint32_t, cl_device_id*,
                      std::uint32_t*) = library["clGetDeviceIDs"];
  cl_context (*CreateContext)(const void*, std::uint32_t, const cl_device_id*, void*, void*,
                              int*) = library["clCreateContext"];
  cl_queue (*CreateCommandQueue)(cl_context, cl_device_id, std::uint64_t, int*) = library["clCreateCommandQueue"];
  cl_mem (*CreateBuffer)(cl_context, std::uint64_t, std::size_t, void*, int*) = library["clCreateBuffer"];
  int (*EnqueueWriteBuffer)(cl_queue, cl_mem, std::uint32_t, std::size_t, std::size_t, const void*, std::uint32_t,
                            const void*, void*) = library["clEnqueueWriteBuffer"];
  int (*EnqueueReadBuffer)(cl_queue, cl_mem, std::uint32_t, std::size_t, std::size_t, void*, std::uint32_t, const void*,
                           void*) = library["clEnqueueReadBuffer"];
  int (*ReleaseMemObject)(cl_mem) = library["clReleaseMemObject"];
  int (*ReleaseCommandQueue)(cl_queue) = library["clReleaseCommandQueue"];
  int (*ReleaseContext)(cl_context) = library["clReleaseContext"];
};

cl_device_id first_device(const OpenCl& cl) {
  cl_platform_id platforms[8] = {};
  cl_device_id device = nullptr;
  cl.GetPlatformIDs(8, platforms, nullptr);
  for (const cl_platform_id platform : platforms)
    if (platform && cl.GetDeviceIDs(platform, all_devices, 1, &device, nullptr) == 0) return device;
  throw std::runtime_error("no platform has a device");
}

int run() {
  // What the caller has: a context, a queue, and buffers; y is the second half of a larger one.
  const OpenCl cl;
  const auto problem = get<Conv2dProblem>(parse_problem("n2c4h12w12k8r3s3p1"));
  const Conv2dElements elements = elements_of(problem);
  const std::vector<float> x(static_cast<std::size_t>(elements.x), 1), w(static_cast<std::size_t>(elements.w), 0.25f);
  std::vector<float> y(static_cast<std::size_t>(elements.y));
  const std::size_t y_bytes = y.size() * sizeof(float);
  const cl_device_id device = first_device(cl);
  int code = 0;
  const cl_context my_context = cl.CreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
  const cl_queue my_queue = cl.CreateCommandQueue(my_context, device, 0, &code);
  const cl_mem my_x = cl.CreateBuffer(my_context, read_write, x.size() * sizeof(float), nullptr, &code),
               my_w = cl.CreateBuffer(my_context, read_write, w.size() * sizeof(float), nullptr, &code),
               my_y = cl.CreateBuffer(my_context, read_write, 2 * y_bytes, nullptr, &code);
  cl.EnqueueWriteBuffer(my_queue, my_x, yes, 0, x.size() * sizeof(float), x.data(), 0, nullptr, nullptr);
  cl.EnqueueWriteBuffer(my_queue, my_w, yes, 0, w.size() * sizeof(float), w.data(), 0, nullptr, nullptr);

  // omniconv works with all of it. A workspace of the caller's would be a buffer like the others; this is the
  // context's.
  const Context context = opencl::borrow_context(my_context, device);
  Queue queue = opencl::borrow_queue(context, my_queue);
  const Conv2dPlan plan(context, problem);
  plan.run(queue, {.x = {opencl::borrow_buffer(context, my_x)},
                   .w = {opencl::borrow_buffer(context, my_w)},
                   .y = {opencl::borrow_buffer(context, my_y), static_cast<std::int64_t>(y_bytes)},
                   .workspace = context.allocate(plan.workspace_bytes())});
  std::printf("%s on %s: %s\n", to_text(problem).c_str(), context.device().id.c_str(), plan.solver().c_str());

  // The caller's next command follows the run, since they share a queue that is in order.
  cl.EnqueueReadBuffer(my_queue, my_y, yes, y_bytes, y_bytes, y.data(), 0, nullptr, nullptr);
  for (const cl_mem memory : {my_x, my_w, my_y}) cl.ReleaseMemObject(memory);
  cl.ReleaseCommandQueue(my_queue);
  cl.ReleaseContext(my_context);
  // Of ones: 4 channels x 9 taps of a quarter inside, x 4 at the corner.
  const bool right = y[0] == 4 && y[13] == 9;
  std::printf("the corner became %g, its diagonal neighbour %g: %s\n", static_cast<double>(y[0]),
              static_cast<double>(y[13]), right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main() try { return has_device("opencl_memory", "opencl") ? run() : skipped; } catch (const std::exception& error) {
  std::fprintf(stderr, "opencl_memory: %s\n", error.what());
  return 2;
}
