// Memory and streams of the caller's on a CUDA device, made by the driver without omniconv.
#include <gtest/gtest.h>

#include "borrow_testing.h"
#include "devices/cuda/cuda_device.h"
#include "gpu_testing.h"
#include "omniconv/cuda.h"

namespace omniconv {
namespace {

namespace cu = devices::cuda;

class CudaDeviceBorrow : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    context = Context(device);
    primary = std::dynamic_pointer_cast<cu::CudaDevice>(device)->context();
    const cu::Current current(primary->get());
    ASSERT_EQ(cu::api().StreamCreate(&stream, cu::CU_STREAM_NON_BLOCKING), cu::CUDA_SUCCESS);
  }
  void TearDown() override {
    if (!primary) return;
    const cu::Current current(primary->get());
    for (const cu::CUdeviceptr address : addresses) EXPECT_EQ(cu::api().MemFree(address), cu::CUDA_SUCCESS);
    EXPECT_EQ(cu::api().StreamDestroy(stream), cu::CUDA_SUCCESS);
  }
  cu::CUdeviceptr make(std::size_t bytes) {
    const cu::Current current(primary->get());
    cu::CUdeviceptr address = 0;
    EXPECT_EQ(cu::api().MemAlloc(&address, bytes), cu::CUDA_SUCCESS);
    addresses.push_back(address);
    return address;
  }
  // Of these values, from its byte `at` on.
  cu::CUdeviceptr make(const std::vector<float>& values, std::size_t at) {
    const cu::CUdeviceptr address = make(at + values.size() * sizeof(float)) + at;
    context.make_queue().upload(borrow(address, bytes_of(values)), 0, values.data(), bytes_of(values)).wait();
    return address;
  }
  Buffer borrow(cu::CUdeviceptr address, std::int64_t bytes) { return cuda::borrow_buffer(context, address, bytes); }

  Context context = Context({.device = "cpu"});
  std::shared_ptr<cu::SharedContext> primary;
  cu::CUstream stream = nullptr;
  std::vector<cu::CUdeviceptr> addresses;
};

TEST_F(CudaDeviceBorrow, ConvolvesInIt) {
  const IntegerLayer layer;
  for (const char* const solver : {"conv2d/direct", "conv2d/im2col_gemm"})
    for (void* const on : {static_cast<void*>(stream), static_cast<void*>(nullptr)}) {
      Queue queue = cuda::borrow_queue(context, on);
      const Conv2dPlan plan(context, layer.problem, {.allow = {solver}});
      // At addresses that only whole elements fit.
      const cu::CUdeviceptr x = make(layer.x, 4), w = make(layer.w, 8),
                            y = make(layer.y.size() * sizeof(float) + 12) + 12;
      Conv2dRun run{.x = {borrow(x, bytes_of(layer.x))}, .w = {borrow(w, bytes_of(layer.w))}};
      run.y = {borrow(y, bytes_of(layer.y))};
      const std::int64_t bytes = plan.workspace_bytes();
      for (const Buffer& workspace :
           {borrow(make(static_cast<std::size_t>(bytes + 1)), bytes), context.allocate(bytes)}) {
        run.workspace = workspace;
        plan.run(queue, run);
        std::vector<float> got(layer.y.size());
        queue.download(got.data(), run.y.buffer, 0, bytes_of(got)).wait();
        EXPECT_EQ(got, layer.y) << solver;
      }
    }
}

TEST_F(CudaDeviceBorrow, MultipliesInIt) {
  const IntegerProduct product;
  Queue queue = cuda::borrow_queue(context, stream);
  const GemmPlan plan(context, product.problem);
  const Buffer c = borrow(make(product.c.size() * sizeof(float)), bytes_of(product.c));
  plan.run(queue, {.a = {borrow(make(product.a, 4), bytes_of(product.a))},
                   .b = {borrow(make(product.b, 0), bytes_of(product.b))},
                   .c = {c},
                   .workspace = context.allocate(plan.workspace_bytes())});
  std::vector<float> got(product.c.size());
  queue.download(got.data(), c, 0, bytes_of(got)).wait();
  EXPECT_EQ(got, product.c);
}

TEST_F(CudaDeviceBorrow, Refusals) {
  const auto refused = [](const auto& call) { return error_of(call, ErrorKind::bad_input); };
  const cu::CUdeviceptr address = make(100);
  EXPECT_EQ(borrow(address + 40, 60).bytes(), 60);
  EXPECT_HAS(refused([&] { borrow(0, 4); }), "null pointer");
  EXPECT_HAS(refused([&] { borrow(address, std::int64_t{1} << 30); }), "its allocation ends");
  float of_host = 0;
  EXPECT_HAS(refused([&] { cuda::borrow_buffer(context, &of_host, 4); }), "CUDA knows no memory there");
  const auto locked = device->allocate_host(64);
  EXPECT_HAS(refused([&] { cuda::borrow_buffer(context, locked->data(), 64); }), "memory of the host");
  EXPECT_HAS(refused([&] { cuda::borrow_queue(context, reinterpret_cast<void*>(2)); }),
             "default stream of each thread");
  DeviceListing listing;
  devices::cuda_backend().list(listing);
  if (listing.found.size() < 2) return;  // the rest is for machines of two
  const Context second({.device = listing.found[1].id});
  EXPECT_HAS(refused([&] { cuda::borrow_buffer(second, address, 100); }), "it is memory of the device cuda:0");
  EXPECT_HAS(refused([&] { cuda::borrow_queue(second, stream); }), "belongs to another device");
}

}  // namespace
}  // namespace omniconv
