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

// What NVIDIA's compiler printed on an H200, of two kernels.
TEST(OpenClRegisters, AreReadFromTheBuildLog) {
  const std::string first =
      "(): Warning: Function strips is a kernel, so overriding noinline attribute.\n"
      "ptxas info    : Overriding maximum register limit 256 for 'strips' with  80 of maxrregcount option\n"
      "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'strips' for 'sm_90a'\n"
      "ptxas info    : Function properties for strips\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
  const std::string used =
      "ptxas info    : Used 79 registers, used 0 barriers\nptxas info    : Compile time = 101.584 ms\n";
  const std::string second =
      "ptxas info    : Compiling entry function 'rest_2' for 'sm_90a'\nptxas info    : Used 8 registers\n";
  EXPECT_EQ(cl::registers_of_kernels(first + used + second), " strips=79 rest_2=8");
  EXPECT_EQ(cl::registers_of_kernels(first + second), " rest_2=8");
  EXPECT_EQ(cl::registers_of_kernels(first), "");
  EXPECT_EQ(cl::registers_of_kernels("Compiling entry function 'cut"), "");
  EXPECT_EQ(cl::registers_of_kernels("Compiling entry function 'strips' for 'sm_90'\nUsed many registers"), "");
}

TEST(OpenClRegisters, BoundTheGroupsOfAMultiprocessor) {
  constexpr std::int64_t all = 65536;
  EXPECT_EQ(cl::groups_by_registers(all, 80, 128, 90), 6);
  EXPECT_EQ(cl::groups_by_registers(all, 79, 128, 90), 6);
  EXPECT_EQ(cl::groups_by_registers(all, 81, 128, 90), 5);
  EXPECT_EQ(cl::groups_by_registers(all, 255, 256, 90), 1);
  EXPECT_EQ(cl::groups_by_registers(all, 168, 256, 90), 1);  // 12 warps; quarters of the registers count by themselves
  EXPECT_EQ(cl::groups_by_registers(all, 16, 128, 90), 16);  // by work items
  EXPECT_EQ(cl::groups_by_registers(all, 16, 128, 86), 12);
  EXPECT_EQ(cl::groups_by_registers(all, 16, 128, 75), 8);
  EXPECT_EQ(cl::groups_by_registers(all, 16, 32, 80), 32);  // by groups
  EXPECT_EQ(cl::groups_by_registers(all, 0, 128, 90), 0);
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
