// What OpenCL devices alone have: objects of the caller, and contexts of their own.
#include <gtest/gtest.h>

#include "devices/opencl/opencl_api.h"
#include "devices/opencl/opencl_device.h"
#include "gpu_testing.h"
#include "omniconv/opencl.h"

namespace omniconv {
namespace {

using devices::KernelArgument;
namespace cl = devices::opencl;
using OpenCl = Gpu;

TEST(OpenClErrors, SayWhereTheDeviceIsLost) {
  const std::string lost = "; the device is lost to this process: start it again";
  EXPECT_EQ(cl::error_name(-36), "CL_INVALID_COMMAND_QUEUE (-36)" + lost);
  EXPECT_EQ(cl::error_name(-9999), "an illegal access, in NVIDIA's numbers (-9999)" + lost);
  EXPECT_EQ(cl::error_name(-5), "CL_OUT_OF_RESOURCES (-5)");
  EXPECT_EQ(cl::call_error("clFinish", -36).what(), "clFinish failed: CL_INVALID_COMMAND_QUEUE (-36)" + lost);
}

TEST(OpenClErrors, TellLackOfMemoryFromALostDevice) {
  for (const cl::cl_int code : {-4, -5, -6}) EXPECT_EQ(cl::call_error("f", code).kind(), ErrorKind::out_of_memory);
  for (const cl::cl_int code : {-1, -36, -9999}) EXPECT_EQ(cl::call_error("f", code).kind(), ErrorKind::environment);
}

TEST_F(OpenCl, RefusesWhatIsOfAnotherContext) {
  const auto queue = device->make_queue();
  const auto program = device->build(add_text, {});
  const auto other_device = devices::opencl_backend().open("", {});
  const auto foreign = other_device->allocate(16);
  const KernelArgument arguments[] = {foreign.get(), 1.0f};
  EXPECT_HAS(error_of(
                 [&] {
                   queue->launch(program, "add", {{4, 1}, {4, 1}}, arguments);
                 },
                 ErrorKind::bad_input),
             "none of");
  const auto foreign_queue = other_device->make_queue();
  EXPECT_HAS(error_of(
                 [&] {
                   foreign_queue->launch(program, "add", {{4, 1}, {4, 1}}, arguments);
                 },
                 ErrorKind::bad_input),
             "program");
}

TEST_F(OpenCl, BorrowsObjectsOfTheCaller) {
  const cl::Api& api = cl::api();
  // The caller's objects, made without omniconv.
  cl::cl_uint count = 0;
  ASSERT_EQ(api.GetPlatformIDs(0, nullptr, &count), cl::CL_SUCCESS);
  std::vector<cl::cl_platform_id> platforms(count);
  ASSERT_EQ(api.GetPlatformIDs(count, platforms.data(), nullptr), cl::CL_SUCCESS);
  int platform_index = 0, device_index = 0;
  ASSERT_EQ(std::sscanf(device->info().id.c_str(), "opencl:%d.%d", &platform_index, &device_index), 2);
  const cl::cl_platform_id platform = platforms[static_cast<std::size_t>(platform_index)];
  cl::cl_device_id ids[16] = {};
  ASSERT_EQ(api.GetDeviceIDs(platform, cl::CL_DEVICE_TYPE_ALL, 16, ids, nullptr), cl::CL_SUCCESS);
  const cl::cl_device_id id = ids[device_index];
  cl::cl_int code = 0;
  const cl::cl_context raw_context = api.CreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
  ASSERT_EQ(code, cl::CL_SUCCESS);
  const cl::cl_command_queue raw_queue = api.CreateCommandQueue(raw_context, id, 0, &code);
  ASSERT_EQ(code, cl::CL_SUCCESS);
  float values[] = {1, 2, 3, 4};
  const cl::cl_mem raw_buffer = api.CreateBuffer(raw_context, cl::CL_MEM_READ_WRITE, sizeof values, nullptr, &code);
  ASSERT_EQ(code, cl::CL_SUCCESS);
  ASSERT_EQ(api.EnqueueWriteBuffer(raw_queue, raw_buffer, 1, 0, sizeof values, values, 0, nullptr, nullptr),
            cl::CL_SUCCESS);

  const Context context = opencl::borrow_context(raw_context, id);
  EXPECT_EQ(context.device().id, device->info().id);
  Buffer buffer = opencl::borrow_buffer(context, raw_buffer);
  Queue queue = opencl::borrow_queue(context, raw_queue);
  EXPECT_EQ(buffer.bytes(), 16);
  EXPECT_HAS(error_of([&] { opencl::borrow_context(nullptr, id); }, ErrorKind::bad_input), "null");
  EXPECT_HAS(error_of([&] { opencl::borrow_buffer(context, nullptr); }, ErrorKind::bad_input), "null");
  EXPECT_HAS(error_of([&] { opencl::borrow_queue(context, nullptr); }, ErrorKind::bad_input), "null");
  EXPECT_HAS(error_of([&] { opencl::borrow_buffer(Context(device), raw_buffer); }, ErrorKind::bad_input),
             "another cl_context");
  EXPECT_HAS(error_of([&] { opencl::borrow_queue(Context(device), raw_queue); }, ErrorKind::bad_input),
             "another cl_context");
  const cl::cl_command_queue unordered =
      api.CreateCommandQueue(raw_context, id, cl::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
  if (code == cl::CL_SUCCESS) {
    EXPECT_HAS(error_of([&] { opencl::borrow_queue(context, unordered); }, ErrorKind::bad_input), "out of order");
    api.ReleaseCommandQueue(unordered);
  }
  // The caller lets go of his objects before the work.
  api.ReleaseMemObject(raw_buffer);
  api.ReleaseCommandQueue(raw_queue);
  api.ReleaseContext(raw_context);

  const auto program = context.impl()->build(add_text, {});
  const KernelArgument arguments[] = {buffer.impl().get(), 10.0f};
  queue.impl()->launch(program, "add", {{4, 1}, {4, 1}}, arguments);
  Event event = queue.download(values, buffer, 0, 16);
  event.wait();
  EXPECT_EQ(std::vector<float>(values, values + 4), (std::vector<float>{11, 12, 13, 14}));
  EXPECT_HAS(error_of([&] { event.seconds(); }, ErrorKind::bad_input), "profiling");
}

}  // namespace
}  // namespace omniconv
