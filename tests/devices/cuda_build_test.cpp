// Programs of CUDA devices, by a compiler that makes nothing of any text: which are built, and which are shared.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>

#include "../error_testing.h"
#include "../image/files.h"
#include "devices/cuda/parse_turns.h"
#include "devices/device.h"
#include "fake_cuda/fake_cuda.h"
#include "omniconv/error.h"
#include "omniconv/plan.h"

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
  const Context context{{.device = "cuda:0", .quick_start = false}};
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

TEST_F(CudaPrograms, AreParsedOneAtATime) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { device.build("text " + std::to_string(i), {}); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_cuda::most_parsed(), 1);
}

TEST(ParseTurns, TheLongestOfThoseThatWaitIsNext) {
  using devices::cuda::ExpectedWork;
  devices::cuda::ParseTurns turns;
  std::vector<ExpectedWork> order;
  turns.enter({});
  std::vector<std::thread> threads;
  for (const ExpectedWork& work : {ExpectedWork{0, 900}, {0.5, 5}, {0.5, 9}, {0.75, 1}, {0.5, 9}})
    threads.emplace_back([&turns, &order, work] {
      turns.enter(work);
      order.push_back(work);
      turns.leave();
    });
  while (turns.waiting() < threads.size()) std::this_thread::yield();
  turns.leave();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<ExpectedWork>{{0.75, 1}, {0.5, 9}, {0.5, 9}, {0.5, 5}, {0, 900}}));
}

// The fake's kernels take (buffer, float).
class CudaQuickStarts : public CudaPrograms {
 protected:
  ~CudaQuickStarts() override {
    fake_cuda::hold_texts("");
    fake_cuda::hold_optimised(false);
    fake_cuda::fail_optimised(false);
  }
  std::shared_ptr<Program> build() const { return quick.impl()->build("text", {}, {.starts_quickly = true}); }
  Sequence sequence_of(const std::shared_ptr<Program>& program) const {
    Sequence sequence = quick.make_sequence();
    const devices::KernelArgument arguments[] = {buffer.impl().get(), 1.0f};
    for (int i = 0; i < 2; ++i) sequence.impl()->launch(program, "add", {{8, 2}, {4, 1}}, arguments);
    return sequence;
  }
  // What waits for the optimised code ends when that is let go, and not before.
  static void expect_waits(const std::function<void()>& work) {
    fake_cuda::hold_optimised(true);
    std::future<void> done = std::async(std::launch::async, work);
    EXPECT_EQ(done.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    fake_cuda::hold_optimised(false);
    done.get();
  }
  static Words compilations() {
    Words all = fake_cuda::take_compilations();
    std::sort(all.begin(), all.end());
    return all;
  }
  const std::string architecture = "--gpu-architecture=sm_90";
  const Context quick{{.device = "cuda:0", .quick_start = true}};
  Queue queue = quick.make_queue();
  const Buffer buffer = quick.allocate(256);
};

TEST_F(CudaQuickStarts, TheFirstSubmissionDoesNotWaitLaterOnesDo) {
  fake_cuda::hold_optimised(true);
  const std::shared_ptr<Program> program = build();
  queue.submit(sequence_of(program)).wait();  // both of its launches
  expect_waits([&] { queue.submit(sequence_of(program)).wait(); });
  queue.submit(sequence_of(program)).wait();
  EXPECT_EQ(compilations(), (Words{architecture, architecture + " quickly"}));
}

TEST_F(CudaQuickStarts, AreWhatAContextIsGivenOnEnoughCores) {
  Context({.device = "cuda:0"}).impl()->build("text", {}, {.starts_quickly = true});
  EXPECT_EQ(compilations().size(), std::thread::hardware_concurrency() >= 4 ? 2u : 1u);
}

TEST_F(CudaQuickStarts, RecordingsAndWhoCountsGroupsWait) {
  for (const bool records : {true, false}) {
    fake_cuda::hold_optimised(true);
    const std::shared_ptr<Program> program = build();
    expect_waits([&] {
      if (records)
        quick.record(sequence_of(program)).replay(queue).wait();
      else
        program->resident_groups("add", 64);
    });
  }
}

TEST_F(CudaQuickStarts, AreOfSomeProgramsAndOnDemand) {
  quick.impl()->build("text", {});
  device.build("text", {}, {.starts_quickly = true});
  EXPECT_EQ(fake_cuda::take_compilations(), (Words{architecture, architecture}));
}

TEST_F(CudaQuickStarts, AreOfPlansThatAreMadeAlone) {
  const SolverOptions by_winograd{.solver = "conv2d/winograd/gpu.1"};
  const auto made = [&](std::initializer_list<const char*> texts) {
    std::vector<Problem> problems;
    for (const char* const text : texts) problems.push_back(parse_problem(text));
    make_plans(quick, problems, by_winograd);
    const Words all = fake_cuda::take_compilations();
    return std::pair(all.size(), std::count(all.begin(), all.end(), architecture + " quickly"));
  };
  const auto [together, quick_ones] = made({"n2c64h28w28k64r3s3p1", "n2c64h28w28k128r3s3p1"});
  EXPECT_GE(together, 2u);
  EXPECT_EQ(quick_ones, 0);
  EXPECT_GE(made({"n2c64h28w28k192r3s3p1"}).second, 1);
}

TEST_F(CudaQuickStarts, CompileBothAtOnce) {
  fake_cuda::hold_texts("text");
  std::future<std::shared_ptr<Program>> built = std::async(std::launch::async, [this] { return build(); });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (fake_cuda::compilations_under_way() < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(fake_cuda::compilations_under_way(), 2);
  fake_cuda::hold_texts("");
  EXPECT_NE(built.get(), nullptr);
}

// Also where the program's owner never ends.
TEST_F(CudaQuickStarts, TheEndOfTheProcessWaits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leave_at_once = [] {
    std::atexit([] { std::fprintf(stderr, "%d under way", fake_cuda::compilations_under_way()); });
    fake_cuda::hold_optimised(true);
    static auto* const kept = new std::shared_ptr<Program>(
        Context({.device = "cuda:0", .quick_start = true}).impl()->build("text", {}, {.starts_quickly = true}));
    EXPECT_NE(*kept, nullptr);
    while (fake_cuda::compilations_under_way() == 0) std::this_thread::yield();
    std::thread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      fake_cuda::hold_optimised(false);
    }).detach();
    std::exit(0);
  };
  EXPECT_EXIT(leave_at_once(), testing::ExitedWithCode(0), "^0 under way$");
}

TEST_F(CudaQuickStarts, ErrorsOfOptimisedCodeAreOfAllWhoWait) {
  fake_cuda::fail_optimised(true);
  const std::shared_ptr<Program> program = build();
  queue.submit(sequence_of(program)).wait();
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(error_of([&] { queue.submit(sequence_of(program)); }, ErrorKind::environment)
                    .starts_with("device cuda:0: nvrtcCompileProgram failed"));
}

TEST_F(CudaQuickStarts, OptimisedCodeIsKept) {
  const image::TemporaryFolder folder;
  for (const char* const what : {"compiled", "found"}) {
    const Context own({.device = "cuda:0", .program_cache = folder.path(), .quick_start = true});
    own.impl()->build("text", {}, {.starts_quickly = true});  // which waits, at its end, for the optimised code
    EXPECT_EQ(fake_cuda::take_compilations().size(), what == std::string_view("found") ? 0u : 2u) << what;
  }
}

}  // namespace
}  // namespace omniconv
