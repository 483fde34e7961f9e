// Programs of CUDA devices, by a compiler that makes nothing of any text: which are built, and which are shared.
#include <gtest/gtest.h>

#include <thread>

#include "../error_testing.h"
#include "devices/device.h"
#include "fake_cuda/fake_cuda.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using devices::Definition;
using devices::Program;
using Words = std::vector<std::string>;

class CudaPrograms : public testing::Test {
 protected:
  CudaPrograms() {
    fake_cuda::compile_together(1);
    fake_cuda::take_compilations();
  }
  const Context context{{.device = "cuda:0"}};
  devices::Device& device = *context.impl();
};

TEST_F(CudaPrograms, EqualOnesAreOne) {
  const Definition one[] = {{"A", "1"}}, two[] = {{"A", "2"}};
  auto first = device.build("text", one);
  const std::weak_ptr<Program> watched = first;
  EXPECT_EQ(device.build("text", one), first);
  EXPECT_NE(device.build("text", two), first);
  EXPECT_NE(device.build("texts", one), first);
  EXPECT_NE(Context({.device = "cuda:1"}).impl()->build("text", one), first);
  EXPECT_EQ(fake_cuda::take_compilations().size(), 4u);
  first.reset();
  EXPECT_TRUE(watched.expired());
  device.build("text", one);
  EXPECT_EQ(fake_cuda::take_compilations().size(), 1u);
}

TEST_F(CudaPrograms, EqualOnesAreBuiltByOneThread) {
  std::vector<std::shared_ptr<Program>> built(8);
  std::vector<std::thread> threads;
  for (auto& program : built) threads.emplace_back([&] { program = device.build("text", {}); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& program : built) EXPECT_EQ(program, built[0]);
  EXPECT_EQ(fake_cuda::take_compilations().size(), 1u);
}

// Each waits in the compiler until all four are there.
TEST_F(CudaPrograms, DifferentOnesAreBuiltSideBySide) {
  fake_cuda::compile_together(4);
  std::vector<std::shared_ptr<Program>> built(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < built.size(); ++i)
    threads.emplace_back([&, i] { built[i] = device.build("text " + std::to_string(i), {}); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& program : built) EXPECT_NE(program, nullptr);
}

TEST_F(CudaPrograms, ErrorsAreOfAllWhoWaitAndNotKept) {
  fake_cuda::fail_next("cuModuleLoadData", 200);
  EXPECT_THROW(device.build("text", {}), Error);
  EXPECT_NE(device.build("text", {}), nullptr);
}

TEST_F(CudaPrograms, TargetsAreOfTheDevice) {
  device.build("text", {});
  device.build("text", {}, {{}, "sm_90a"});
  EXPECT_EQ(fake_cuda::take_compilations(), (Words{"--gpu-architecture=sm_90", "--gpu-architecture=sm_90a"}));
  const auto refusal = [&](const char* target) { return error_of([&] { device.build("text", {}, {{}, target}); }); };
  for (const char* const target : {"sm_100a", "sm_9", "sm_90b", "sm_90aa", "compute_90"})
    EXPECT_EQ(refusal(target), "device cuda:0: a program for the target " + std::string(target) +
                                   ": the device runs sm_90, and sm_90a where it has instructions of its own");
}

}  // namespace
}  // namespace omniconv
