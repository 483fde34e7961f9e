// What OpenCL devices alone have: error codes, and contexts of their own.
#include <gtest/gtest.h>

#include "devices/opencl/opencl_api.h"
#include "devices/opencl/opencl_device.h"
#include "gpu_testing.h"

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

}  // namespace
}  // namespace omniconv
