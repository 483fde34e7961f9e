// A convolution among the caller's own CUDA work: in his device memory, on his stream.
//
// Without a CUDA device it says so, and ends with status 77.
#include <omniconv/conv2d.h>
#include <omniconv/cuda.h>
#include <omniconv/error.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "library.h"
#include "skipped.h"

namespace {

using namespace omniconv;

// The part of CUDA's driver API that is used, as <cuda.h> has it. With the runtime API it is cudaMalloc and
// cudaStreamCreate, and there is no context to name.
using CUcontext = struct context*;
using CUstream = struct stream*;
using CUdeviceptr = unsigned long long;
struct Cuda {
  Library library{"libcuda.so.1"};
  int (*Init)(unsigned) = library["cuInit"];
  int (*DeviceGet)(int*, int) = library["cuDeviceGet"];
  int (*DevicePrimaryCtxRetain)(CUcontext*, int) = library["cuDevicePrimaryCtxRetain"];
  int (*DevicePrimaryCtxRelease)(int) = library["cuDevicePrimaryCtxRelease_v2"];
  int (*CtxSetCurrent)(CUcontext) = library["cuCtxSetCurrent"];
  int (*StreamCreate)(CUstream*, unsigned) = library["cuStreamCreate"];
  int (*StreamSynchronize)(CUstream) = library["cuStreamSynchronize"];
  int (*StreamDestroy)(CUstream) = library["cuStreamDestroy_v2"];
  int (*MemAlloc)(CUdeviceptr*, std::size_t) = library["cuMemAlloc_v2"];
  int (*MemFree)(CUdeviceptr) = library["cuMemFree_v2"];
  int (*MemcpyHtoDAsync)(CUdeviceptr, const void*, std::size_t, CUstream) = library["cuMemcpyHtoDAsync_v2"];
  int (*MemcpyDtoHAsync)(void*, CUdeviceptr, std::size_t, CUstream) = library["cuMemcpyDtoHAsync_v2"];
};

void check(int code) {
  if (code != 0) throw std::runtime_error("a CUDA call failed with code " + std::to_string(code));
}

std::int64_t bytes_of(const std::vector<float>& values) {
  return static_cast<std::int64_t>(values.size() * sizeof(float));
}

int run() {
  // What the caller has: the primary context of device 0, a stream, and one allocation that holds x, w and y.
  const Cuda cuda;
  const auto problem = get<Conv2dProblem>(parse_problem("n2c4h12w12k8r3s3p1"));
  const Conv2dElements elements = elements_of(problem);
  const std::vector<float> x(static_cast<std::size_t>(elements.x), 1), w(static_cast<std::size_t>(elements.w), 0.25f);
  std::vector<float> y(static_cast<std::size_t>(elements.y));
  int device = 0;
  CUcontext primary = nullptr;
  CUstream my_stream = nullptr;
  CUdeviceptr my_x = 0;
  check(cuda.Init(0));
  check(cuda.DeviceGet(&device, 0));
  check(cuda.DevicePrimaryCtxRetain(&primary, device));
  check(cuda.CtxSetCurrent(primary));
  check(cuda.StreamCreate(&my_stream, 1));
  check(cuda.MemAlloc(&my_x, static_cast<std::size_t>(bytes_of(x) + bytes_of(w) + bytes_of(y))));
  const CUdeviceptr my_w = my_x + static_cast<CUdeviceptr>(bytes_of(x)),
                    my_y = my_w + static_cast<CUdeviceptr>(bytes_of(w));
  check(cuda.MemcpyHtoDAsync(my_x, x.data(), x.size() * sizeof(float), my_stream));
  check(cuda.MemcpyHtoDAsync(my_w, w.data(), w.size() * sizeof(float), my_stream));

  // omniconv works with all of it, in a context of the same device. A workspace of the caller's would be borrowed like
  // the arrays, at a multiple of 64 bytes; this is the context's.
  {
    const Context context({.device = "cuda:0"});
    Queue queue = omniconv::cuda::borrow_queue(context, my_stream);
    const Conv2dPlan plan(context, problem);
    plan.run(queue, {.x = {omniconv::cuda::borrow_buffer(context, my_x, bytes_of(x))},
                     .w = {omniconv::cuda::borrow_buffer(context, my_w, bytes_of(w))},
                     .y = {omniconv::cuda::borrow_buffer(context, my_y, bytes_of(y))},
                     .workspace = context.allocate(plan.workspace_bytes())});
    std::printf("%s on %s: %s\n", to_text(problem).c_str(), context.device().id.c_str(), plan.solver().c_str());

    // The caller's next work on the stream follows the run.
    check(cuda.MemcpyDtoHAsync(y.data(), my_y, y.size() * sizeof(float), my_stream));
    check(cuda.StreamSynchronize(my_stream));
  }
  check(cuda.MemFree(my_x));
  check(cuda.StreamDestroy(my_stream));
  check(cuda.DevicePrimaryCtxRelease(device));
  // Of ones: 4 channels x 9 taps of a quarter inside, x 4 at the corner.
  const bool right = y[0] == 4 && y[13] == 9;
  std::printf("the corner became %g, its diagonal neighbour %g: %s\n", static_cast<double>(y[0]),
              static_cast<double>(y[13]), right ? "right" : "WRONG");
  return right ? 0 : 1;
}

}  // namespace

int main() try { return has_device("cuda_memory", "cuda") ? run() : skipped; } catch (const std::exception& error) {
  std::fprintf(stderr, "cuda_memory: %s\n", error.what());
  return 2;
}
