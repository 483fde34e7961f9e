// A run on a GPU's queue allocates nothing after the first: what `new` gives the submitting thread is counted. The
// driver's own memory comes from malloc, or belongs to its threads.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <vector>

#include "devices/device.h"
#include "gpu_testing.h"
#include "omniconv/filter2d.h"
#include "operations/filter2d/weights.h"

namespace {
thread_local long allocations = 0;

void* counted(std::size_t size) {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
}  // namespace

// Not inlined: GCC would see std::free meet a `new`, or delete a std::malloc, and warn.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (void* const memory = counted(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace omniconv {
namespace {

class GpuAllocation : public testing::Test {
 protected:
  void SetUp() override {
    ids_ = tested_ids();
    if (ids_.empty()) GTEST_SKIP() << no_device();
  }
  std::vector<std::string> ids_;
};

class GpuFilterAllocation : public GpuAllocation, public testing::WithParamInterface<const char*> {};

TEST_P(GpuFilterAllocation, RunsAllocateNothing) {
  // A row has an interior and a rest, so that every solver launches several kernels and spans them.
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d u8 h40w200c3r3s5"));
  Filter filter;
  for (const double row : {1.0, 2.0, 1.0})
    for (const double column : {1.0, 4.0, 6.0, 4.0, 1.0}) filter.weights.push_back(row * column);
  for (const std::string& id : ids_) {
    const Context context({.device = id, .quick_start = false});
    const Filter2dPlan plan(context, problem, filter, {.solver = GetParam()});
    Queue queue = context.make_queue();
    const Buffer input = context.allocate(40 * 200 * 3), output = context.allocate(40 * 200 * 3),
                 workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
    const Filter2dRun run{.input = input, .output = output, .workspace = workspace};
    std::vector<std::byte> pixels(40 * 200 * 3);

    const long before_all = allocations;
    plan.run(queue, run).wait();
    EXPECT_GT(allocations, before_all) << "the first run makes kernels: the counter counts";

    long before = allocations;
    for (int i = 0; i < 20; ++i) plan.run(queue, run).wait();
    EXPECT_EQ(allocations - before, 0) << id << ": one after the other";

    before = allocations;
    Event last;
    for (int i = 0; i < 200; ++i) last = plan.run(queue, run);  // more than the queue keeps at a time
    last.wait();
    EXPECT_EQ(allocations - before, 0) << id << ": without waiting in between";

    before = allocations;
    queue.upload(input, 0, pixels.data(), input.bytes());
    queue.download(pixels.data(), output, 0, output.bytes()).wait();
    EXPECT_EQ(allocations - before, 0) << id << ": transfers";
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, GpuFilterAllocation,
                         testing::Values("filter2d/direct/gpu.1", "filter2d/separable/gpu.1",
                                         "filter2d/separable/gpu-fused.1"),
                         [](const auto& solver) {
                           const std::string id = solver.param;
                           return id.find("fused") != std::string::npos    ? "fused"
                                  : id.find("direct") != std::string::npos ? "direct"
                                                                           : "separable";
                         });

// By names; the operands stand ready.
TEST_F(GpuAllocation, OtherOperationsAllocateNothingEither) {
  for (const std::string& id : ids_)
    for (const char* text :
         {"gemm f32 nn m70n90k200", "bwd_filter n2c8h12w12k8r3s3p1", "pool2d bwd nhwc n2c8h16w16r3s3p1u2",
          "activation tanh bwd n2c3h17w19", "bias_add bwd n3c2h200w200", "add relu n3c4h17w19k9u2", "dropout n3000",
          "batch_norm relu n3c2h64w65", "batch_norm bwd nhwc n3c8h64w65", "loss bwd n9c130", "loss bwd sums n9c130",
          "norm acc n30000", "update adam scaled guarded n3000", "batch flip m40n9c3h17w19s4", "pool2d n30c9h7w7r7s7",
          "pool2d n2c3h17w19r5s3p1u2"}) {
      const Context context({.device = id, .quick_start = false});
      const Plan plan(context, parse_problem(text));
      Queue queue = context.make_queue();
      std::vector<NamedOperand> operands;
      for (const ArraySpec& array : plan.arrays()) operands.push_back({array.name, {context.allocate(array.bytes())}});
      const Buffer workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
      for (int i = 0; i < 2; ++i) plan.run(queue, operands, workspace).wait();

      const long before = allocations;
      for (int i = 0; i < 20; ++i) plan.run(queue, operands, workspace).wait();
      EXPECT_EQ(allocations - before, 0) << id << ": " << text << " by " << plan.solver();
    }
}

}  // namespace
}  // namespace omniconv
