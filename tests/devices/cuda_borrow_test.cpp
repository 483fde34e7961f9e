// Memory and streams of the caller's, by a driver without hardware: what is taken, what is refused, and that nothing of
// it is freed.
#include <gtest/gtest.h>

#include <numeric>

#include "../error_testing.h"
#include "devices/device.h"
#include "fake_cuda/fake_cuda.h"
#include "omniconv/conv2d.h"
#include "omniconv/cuda.h"

namespace omniconv {
namespace {

class CudaBorrow : public testing::Test {
 protected:
  CudaBorrow() {
    fake_cuda::add_memory(memory, sizeof memory, 0);
    std::iota(std::begin(memory), std::end(memory), std::uint8_t{1});
    fake_cuda::take_calls();
    fake_cuda::take_ends();
  }
  const Context context = Context({.device = "cuda:0"});
  alignas(256) static inline std::uint8_t memory[64];
};

TEST_F(CudaBorrow, WorksInTheCallersMemoryOnHisStream) {
  {
    const Buffer low = cuda::borrow_buffer(context, memory, 16), high = cuda::borrow_buffer(context, memory + 32, 32);
    EXPECT_EQ(low.bytes(), 16);
    Queue queue = cuda::borrow_queue(context, fake_cuda::make_stream(0));
    queue.copy(high, 4, low, 0, 8).wait();
    cuda::borrow_queue(context, nullptr).copy(low, 0, high, 4, 2).wait();
  }
  EXPECT_EQ(fake_cuda::take_calls(), (std::vector<std::string>{"cuMemcpyAsync 8 bytes on 0#7",  //
                                                               "cuMemcpyAsync 2 bytes on default"}));
  EXPECT_EQ(std::vector<std::uint8_t>(memory + 36, memory + 44), (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(fake_cuda::take_ends(), std::vector<std::string>());
}

// So that the test above can fail.
TEST_F(CudaBorrow, OwnMemoryAndStreamsEnd) {
  {
    const Buffer own = context.allocate(16);
    context.make_queue().copy(own, 0, cuda::borrow_buffer(context, memory, 16), 0, 16).wait();
  }
  EXPECT_EQ(fake_cuda::take_ends(), (std::vector<std::string>{"cuStreamDestroy of 0", "cuMemFree"}));
}

TEST_F(CudaBorrow, MemoryThatIsNotTheDevices) {
  static std::uint8_t of_host[16], locked[16], of_second[16], of_other_context[16];
  fake_cuda::add_locked_memory(locked, sizeof locked);
  fake_cuda::add_memory(of_second, sizeof of_second, 1);
  fake_cuda::add_memory(of_other_context, sizeof of_other_context, 0, false);
  const auto borrow = [&](std::uint8_t* at, std::int64_t bytes) {
    return error_of([&] { cuda::borrow_buffer(context, at, bytes); });
  };
  EXPECT_EQ(borrow(nullptr, 16), "device cuda:0: borrowing 16 bytes of device memory at a null pointer");
  const auto ends_with = [](const std::string& text, const std::string& end) {
    EXPECT_TRUE(text.ends_with(end)) << text;
  };
  ends_with(borrow(of_host, 16),
            "CUDA knows no memory there; give an address that cuMemAlloc or cudaMalloc gave, or of a byte behind it");
  ends_with(borrow(locked, 16), "it is memory of the host; borrow it by Context::borrow");
  ends_with(borrow(of_second, 16), "it is memory of the device cuda:1; make a context of that device, or copy it");
  ends_with(borrow(of_other_context, 16),
            "it belongs to a CUDA context that is not the device's primary one; allocate it with that one current");
  ends_with(borrow(memory, 65), "its allocation ends 64 bytes from there");
  ends_with(borrow(memory + 60, 5), "its allocation ends 4 bytes from there");
  EXPECT_EQ(borrow(memory, -1), "a buffer of -1 bytes: the size must be at least 0");
  EXPECT_EQ(error_of([&] { cuda::borrow_buffer(Context({.device = "cpu"}), memory, 16); }),
            "borrowing a CUDA pointer: the context's device cpu is no CUDA device");
  EXPECT_EQ(cuda::borrow_buffer(context, nullptr, 0).bytes(), 0);
  EXPECT_EQ(cuda::borrow_buffer(Context({.device = "cuda:1"}), of_second, 16).bytes(), 16);
}

TEST_F(CudaBorrow, StreamsThatAreNotTheDevices) {
  const auto borrow = [&](void* stream) { return error_of([&] { cuda::borrow_queue(context, stream); }); };
  for (void* const stream : {fake_cuda::make_stream(1), fake_cuda::make_stream(0, false)})
    EXPECT_NE(
        borrow(stream).find("cuda:0: borrowing a CUDA stream that belongs to another device, or to a CUDA context"),
        std::string::npos);
  EXPECT_NE(borrow(reinterpret_cast<void*>(2)).find("default stream of each thread"), std::string::npos);
  EXPECT_EQ(error_of([&] { cuda::borrow_queue(Context({.device = "cpu"}), nullptr); }),
            "borrowing a CUDA stream: the context's device cpu is no CUDA device");
}

// Two buffers of the same memory are known to be that.
TEST_F(CudaBorrow, OverlapsAreFound) {
  const Buffer low = cuda::borrow_buffer(context, memory, 40), high = cuda::borrow_buffer(context, memory + 32, 32);
  Queue queue = context.make_queue();
  EXPECT_NE(error_of([&] { queue.copy(high, 0, low, 30, 3); }).find("overlap"), std::string::npos);
  EXPECT_NO_THROW(queue.copy(high, 0, low, 29, 3).wait());
  const Buffer mapped = context.borrow(memory, 64);  // as memory of the host, at the same addresses
  EXPECT_NE(error_of([&] { queue.copy(mapped, 0, low, 0, 4); }).find("overlap"), std::string::npos);
}

// The driver computes nothing: it sees which stream the work goes to, and what is refused never gets there.
TEST_F(CudaBorrow, ConvolutionsRunOnThem) {
  const auto problem = get<Conv2dProblem>(parse_problem("n1c1h2w2k1r1s1"));  // 4 elements, 1, and 4
  const Conv2dPlan plan(context, problem, {.allow = {"conv2d/depthwise"}});
  Queue queue = cuda::borrow_queue(context, fake_cuda::make_stream(0));
  const auto borrowed = [&](std::ptrdiff_t at, std::int64_t bytes) {
    return Operand{cuda::borrow_buffer(context, memory + at, bytes)};
  };
  const Conv2dRun right{.x = borrowed(0, 16), .w = borrowed(16, 4), .y = borrowed(32, 16)};
  plan.run(queue, right).wait();
  EXPECT_EQ(fake_cuda::take_calls(), std::vector<std::string>{"cuLaunchKernel of memory of 0 on 0#7"});
  const auto run = [&](const auto& change) {
    Conv2dRun changed = right;
    change(changed);
    return error_of([&] { plan.run(queue, changed); });
  };
  EXPECT_NE(run([&](Conv2dRun& to) { to.y = borrowed(12, 16); }).find("y and x overlap in memory"), std::string::npos);
  EXPECT_NE(run([&](Conv2dRun& to) { to.y = borrowed(34, 16); }).find("the buffer of y is misaligned"),
            std::string::npos);
  EXPECT_NE(run([&](Conv2dRun& to) { to.x = borrowed(48, 12); }).find("the buffer of x has 12 bytes"),
            std::string::npos);
  EXPECT_EQ(fake_cuda::take_calls(), std::vector<std::string>());
}

TEST_F(CudaBorrow, WorkspacesToo) {
  alignas(256) static std::uint8_t large[1 << 16];
  fake_cuda::add_memory(large, sizeof large, 0);
  const auto problem = get<Conv2dProblem>(parse_problem("n1c2h4w4k3r3s3p1"));
  const Conv2dPlan plan(context, problem, {.allow = {"conv2d/im2col_gemm"}});
  ASSERT_GT(plan.workspace_bytes(), 0);
  ASSERT_LT(plan.workspace_bytes(), (1 << 16) - 4096);
  Queue queue = cuda::borrow_queue(context, nullptr);
  const auto run = [&](std::ptrdiff_t workspace_at) {
    Conv2dRun arrays{.x = {cuda::borrow_buffer(context, large, 128)},
                     .w = {cuda::borrow_buffer(context, large + 1024, 216)},
                     .y = {cuda::borrow_buffer(context, large + 2048, 192)},
                     .workspace = cuda::borrow_buffer(context, large + workspace_at, plan.workspace_bytes())};
    plan.run(queue, arrays).wait();
  };
  EXPECT_NO_THROW(run(4096));
  EXPECT_GE(fake_cuda::take_calls().size(), 2u);  // the columns, and their product
  EXPECT_NE(error_of([&] { run(4096 + 16); }).find("the workspace is misaligned"), std::string::npos);
  EXPECT_NE(error_of([&] { run(1024); }).find("the workspace and w overlap in memory"), std::string::npos);
}

}  // namespace
}  // namespace omniconv
