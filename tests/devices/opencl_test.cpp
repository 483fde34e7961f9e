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

TEST(OpenClLocalMemory, BoundsTheGroupsOfAMultiprocessor) {
  EXPECT_EQ(cl::groups_by_local_memory(47104, 90), 4);  // 228 KiB, of which each group takes one more
  EXPECT_EQ(cl::groups_by_local_memory(56 * 1024, 90), 4);
  EXPECT_EQ(cl::groups_by_local_memory(56 * 1024 + 1, 90), 3);
  EXPECT_EQ(cl::groups_by_local_memory(48 * 1024, 80), 3);
  EXPECT_EQ(cl::groups_by_local_memory(48 * 1024, 89), 2);
  EXPECT_EQ(cl::groups_by_local_memory(48 * 1024, 75), 1);
  EXPECT_EQ(cl::groups_by_local_memory(32 * 1024, 70), 3);
  EXPECT_EQ(cl::groups_by_local_memory(48 * 1024, 61), 2);
  EXPECT_EQ(cl::groups_by_local_memory(48 * 1024, 60), 1);
  EXPECT_EQ(cl::groups_by_local_memory(0, 61), 32);
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

// The largest of a group's own numbers, of which every group has others, again and again.
constexpr const char* largest_text = R"(
DEVICE uint largest_of(const uint value, LOCAL_MEMORY uint* of_items) {
  of_items[LOCAL_ID_X] = value;
  for (int apart = 128; apart > 0; apart /= 2) {
    BARRIER;
    if (LOCAL_ID_X < apart) of_items[LOCAL_ID_X] = max(of_items[LOCAL_ID_X], of_items[LOCAL_ID_X + apart]);
  }
  BARRIER;
  return of_items[0];
}
DEVICE uint largest_of_all(GLOBAL const uint* values, const long count, LOCAL_MEMORY uint* of_items) {
  uint largest = 0;
  for (long i = LOCAL_ID_X; i < count; i += 256) largest = max(largest, values[i]);
  return largest_of(largest, of_items);
}
KERNEL_OF(256, 1)
void differ(GLOBAL const uint* values, const long count, GLOBAL uint* differences) {
  LOCAL uint of_items[256];
  const uint expected = (uint)GROUP_ID_X + 1;
  uint different = 0;
  for (int i = 0; i < 100; ++i) {
    different += largest_of_all(values + GROUP_ID_X * count, count, of_items) != expected;
    BARRIER;
    different += largest_of_all(values + GROUP_ID_X * count, count / 2, of_items) != expected;
    BARRIER;
  }
  differences[GLOBAL_ID_X] = different;
}
)";

// A program is found again only where it was compiled by the same flags, PoCL's own among them.
TEST_F(OpenCl, ProgramsOfOtherFlagsAreOthers) {
  const auto program = device->build(add_text, {});
  EXPECT_EQ(device->build(add_text, {}), program);
  {
    const WithFlagsOfPocl fast("-cl-fast-relaxed-math");
    EXPECT_NE(device->build(add_text, {}), program);
  }
  EXPECT_EQ(device->build(add_text, {}), program);
}

// PoCL's threads run groups at once. Compiled as users have it.
TEST_F(OpenCl, LocalArraysAreTheirGroupsOwn) {
  const WithOptimizer optimizer;
  const auto program = device->build(largest_text, {});
  constexpr std::int64_t groups = 64, count = 300, items = groups * 256;
  std::vector<std::uint32_t> values(groups * count), differences(items);
  for (std::int64_t group = 0; group < groups; ++group)
    values[static_cast<std::size_t>(group * count + 7)] = static_cast<std::uint32_t>(group + 1);
  const auto queue = device->make_queue();
  const auto source = device->allocate(groups * count * 4), target = device->allocate(items * 4);
  queue->upload(source, 0, values.data(), source->bytes()).wait();
  const KernelArgument arguments[] = {source.get(), count, target.get()};
  queue->launch(program, "differ", {{items, 1}, {256, 1}}, arguments).wait();
  queue->download(differences.data(), target, 0, target->bytes()).wait();
  for (const std::uint32_t of_item : differences) ASSERT_EQ(of_item, 0u);
}

}  // namespace
}  // namespace omniconv
