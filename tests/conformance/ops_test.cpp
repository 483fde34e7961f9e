// The public functions: what a run refuses, and that it allocates nothing.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>

#include "../error_testing.h"
#include "checking/measure.h"
#include "conformance.h"
#include "devices/cpu/cpu_device.h"
#include "operations/filter2d/filter2d.h"
#include "operations/operation.h"

namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
// Not inlined: GCC would see std::free meet a `new` that it has not inlined, and warn.
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace omniconv {
namespace {

class Run : public testing::Test {
 protected:
  Context context{{.device = "cpu", .threads = 2}};
  Filter2dProblem problem = get<Filter2dProblem>(parse_problem("filter2d u8 h64w80c3r5s5"));
  Filter filter = filter_for(problem);
  Filter2dPlan plan{context, problem, filter};
  Queue queue = context.make_queue();
  Buffer input = context.allocate(64 * 80 * 3), output = context.allocate(64 * 80 * 3);
  Buffer workspace = context.allocate(plan.workspace_bytes());

  Filter2dRun good() const { return {.input = input, .output = output, .workspace = workspace}; }
  std::string refusal(const Filter2dRun& run) {
    return outcome_of([&] { plan.run(queue, run).wait(); });
  }
  void expect_refusal(const Filter2dRun& run, const char* part) {
    EXPECT_NE(refusal(run).find(part), std::string::npos) << refusal(run);
  }
};

TEST_F(Run, AllocatesNothing) {
  plan.run(queue, good()).wait();  // threads start
  const long before = allocations;
  for (int i = 0; i < 20; ++i) plan.run(queue, good()).wait();
  EXPECT_EQ(allocations - before, 0);
}

TEST_F(Run, IsAsynchronousAndKeepsItsBuffers) {
  Event last;
  for (int i = 0; i < 200; ++i) last = plan.run(queue, good());  // more than the queue's ring holds
  input = output = workspace = Buffer();
  last.wait();
  EXPECT_EQ(input.bytes(), 0);
}

TEST_F(Run, RefusesWrongMemory) {
  EXPECT_EQ(refusal(good()), "nothing was thrown");
  auto run = good();
  run.input = Buffer();
  expect_refusal(run, "input buffer is missing");
  run = good();
  run.output = context.allocate(64 * 80 * 3 - 1);
  expect_refusal(run, "output buffer has 15359 bytes");
  run = good();
  run.workspace = context.allocate(1);
  expect_refusal(run, "workspace has 1 bytes");
  run = good();
  run.input_stride_bytes = 239;
  expect_refusal(run, "input stride of 239 bytes");
  run = good();
  run.output_offset_bytes = -1;
  expect_refusal(run, "output offset of -1 bytes");
  run = good();
  run.output = run.input;
  expect_refusal(run, "overlap");
  run = good();
  run.output_first = 60;
  run.output_rows = 5;
  expect_refusal(run, "output rows 60 to 64 lie outside the output's 64 rows");
  run = good();
  run.output_first = 30;
  run.output_rows = 4;
  run.input_first = 29;
  run.input_rows = 8;
  expect_refusal(run, "reads input row 28");
  run.input_first = 28;
  EXPECT_EQ(refusal(run), "nothing was thrown");
  run.input_rows = 7;
  expect_refusal(run, "reads input row 35");
}

TEST_F(Run, OneBufferMayHoldBothSides) {
  const Buffer both = context.allocate(2 * 64 * 80 * 3);
  EXPECT_EQ(refusal({.input = both, .output = both, .workspace = workspace, .output_offset_bytes = 64 * 80 * 3}),
            "nothing was thrown");
}

// Buffers that are borrowed may share memory: halves of one image, or rows of it.
TEST_F(Run, BorrowedMemoryIsKeptApart) {
  constexpr std::int64_t row = 80 * 3, stride = 3 * row;
  std::vector<std::byte> image(static_cast<std::size_t>(stride * 64));
  const auto from = [&](std::int64_t byte) { return context.borrow(image.data() + byte, std::ssize(image) - byte); };
  const auto run = [&](std::int64_t input_at, std::int64_t output_at) {
    Filter2dRun beside = good();
    beside.input = from(input_at), beside.output = from(output_at);
    beside.input_stride_bytes = beside.output_stride_bytes = stride;
    return refusal(beside);
  };
  for (const std::int64_t input_at : {std::int64_t{0}, row, 2 * row})
    for (const std::int64_t output_at : {std::int64_t{0}, row, 2 * row})
      EXPECT_EQ(run(input_at, output_at) == "nothing was thrown", input_at != output_at)
          << input_at << " " << output_at;
  EXPECT_EQ(run(0, row - 1).find("input and output overlap in memory"), 0u);
  EXPECT_EQ(run(row + 1, 0), "nothing was thrown");
  EXPECT_EQ(run(2 * row, row + 1).find("input and output overlap in memory"), 0u);
  Filter2dRun mixed = good();
  const Buffer all = context.allocate(plan.workspace_bytes() + 64 * row);
  mixed.workspace = mixed.output = all;
  expect_refusal(mixed, "the workspace and output overlap in memory");
  mixed.output_offset_bytes = plan.workspace_bytes();
  EXPECT_EQ(refusal(mixed), "nothing was thrown");
  mixed = good();
  std::vector<std::byte> work(static_cast<std::size_t>(plan.workspace_bytes()) + 128);
  const std::intptr_t misaligned = 64 - reinterpret_cast<std::intptr_t>(work.data()) % 64 + 8;
  mixed.workspace = context.borrow(work.data() + misaligned, plan.workspace_bytes());
  expect_refusal(mixed, "the workspace is misaligned");
}

// Images of types of several bytes begin at multiples of them, though a device might read them anywhere.
TEST(Runs, MisalignedImagesAreRefused) {
  const Context context({.device = "cpu"});
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d u16>f32 h4w5c1r1s1"));
  const Filter2dPlan plan(context, problem, {.weights = {1}});
  Queue queue = context.make_queue();
  std::vector<float> memory(64);
  auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
  const auto refusal = [&](std::int64_t input_at, std::int64_t output_at) {
    return outcome_of([&] {
      plan.run(queue, {.input = context.borrow(bytes + input_at, 40),
                       .output = context.borrow(bytes + 64 + output_at, 80),
                       .workspace = context.allocate(plan.workspace_bytes())})
          .wait();
    });
  };
  EXPECT_EQ(refusal(2, 4), "nothing was thrown");
  EXPECT_NE(refusal(1, 0).find("the buffer of input is misaligned"), std::string::npos);
  EXPECT_NE(refusal(0, 2).find("the buffer of output is misaligned"), std::string::npos);
}

std::string plan_refusal(const Context& context, const char* text, Filter filter, const SolverOptions& options = {}) {
  return error_of([&] { Filter2dPlan(context, get<Filter2dProblem>(parse_problem(text)), filter, options); });
}

TEST(Plan, RefusesBadFilters) {
  const Context context({.device = "cpu"});
  const auto says = [&](Filter filter, const char* part) {
    const std::string message = plan_refusal(context, "filter2d u8 h8w8r1s3", std::move(filter));
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says({.weights = {1, 2}}, "2 weights: r1s3 needs 3");
  says({.weights = {0, 0, 0}}, "all weights are zero");
  says({.weights = {1e-60, 0, 0}}, "all weights are zero");
  says({.weights = {1, NAN, 0}}, "row 1, column 2");
  says({.weights = {1, 1e39, 0}}, "row 1, column 2");
  says({.weights = {1, 2, 3}, .anchor_x = 3}, "anchor x=3");
  says({.weights = {1, 2, 3}, .scale = INFINITY}, "scale is inf");
  says({.weights = {1, 2, 3}, .bias = NAN}, "bias is nan");
}

TEST(Plan, NamesTheNearestSolverAndTheLeastWorkspace) {
  const Context context({.device = "cpu"});
  const Filter filter{.weights = std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 10}};
  const char* const text = "filter2d u8 h8w8r3s3";
  EXPECT_NE(plan_refusal(context, text, filter, {.solver = "filter2d/drect/cpu.1"}).find("filter2d/direct/cpu.1"),
            std::string::npos);
  EXPECT_NE(plan_refusal(context, text, filter, {.solver = "filter2d/separable/cpu.1"})
                .find("no product of a column and a row"),
            std::string::npos);
  EXPECT_EQ(
      Filter2dPlan(context, get<Filter2dProblem>(parse_problem(text)), filter, {.max_workspace_bytes = 0}).solver(),
      "filter2d/definition/cpu.1");
  EXPECT_NE(plan_refusal(context, text, filter, {.solver = "filter2d/direct/cpu.1", .max_workspace_bytes = 16})
                .find("the limit is 16"),
            std::string::npos);
}

// Passes for an OpenCL device as far as plans can tell, with the CPU's memory, and counts the texts it would compile.
class CountingDevice final : public devices::Device {
 public:
  CountingDevice() : Device({.kind = devices::DeviceKind::opencl}) {
    facts_.info = cpu_->info();
    facts_.info.id = "counting";
  }
  std::shared_ptr<devices::Buffer> allocate(std::int64_t bytes) override { return cpu_->allocate(bytes); }
  std::shared_ptr<devices::Buffer> borrow(void* memory, std::int64_t bytes) override {
    return cpu_->borrow(memory, bytes);
  }
  std::shared_ptr<devices::Queue> make_queue(const QueueOptions&) override { return cpu_->make_queue(); }
  std::shared_ptr<devices::Program> build(std::string_view, std::span<const devices::Definition>,
                                          const devices::BuildOptions&) override {
    struct Text final : devices::Program {
      double compile_seconds() const override { return 0; }
    };
    ++builds;
    return std::make_shared<Text>();
  }
  Peaks measure_peaks(double) override { return {}; }

  int builds = 0;

 private:
  std::shared_ptr<devices::CpuDevice> cpu_ = std::make_shared<devices::CpuDevice>(2);
};

TEST(Plan, CompilesTheTextOfTheSolverItTakesAlone) {
  const auto device = std::make_shared<CountingDevice>();
  const Context context(device);
  // Of rank one and exact, so that many GPU variants serve; one of two passes needs a workspace.
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d u8 h40w50r9s11"));
  Filter filter;
  for (int i = 0; i < 9 * 11; ++i) filter.weights.push_back((1 + i / 11 % 2) * (1 + i % 11));
  const std::vector<Candidate> candidates = explain(context, problem, filter);
  ASSERT_GE(std::count_if(candidates.begin(), candidates.end(), [](const auto& one) { return one.applicable; }), 2);
  EXPECT_EQ(device->builds, 0);
  EXPECT_EQ(Filter2dPlan(context, problem, filter).solver(), candidates[0].solver);
  EXPECT_EQ(device->builds, 1);
  const auto without = std::find_if(candidates.begin(), candidates.end(),
                                    [](const auto& one) { return one.applicable && one.workspace_bytes == 0; });
  ASSERT_NE(without, candidates.end());
  EXPECT_EQ(Filter2dPlan(context, problem, filter, {.max_workspace_bytes = 0}).solver(), without->solver);
  EXPECT_EQ(device->builds, 2);
  const std::string message = plan_refusal(context, "filter2d u8 h40w50r9s11", filter,
                                           {.solver = "filter2d/separable/gpu.1", .max_workspace_bytes = 0});
  EXPECT_EQ(
      message,
      "solver filter2d/separable/gpu.1 cannot serve filter2d u8 h40w50r9s11: needs a workspace of 9600 bytes at the "
      "least, and the limit is 0");  // 48 x 50 fp32
  EXPECT_EQ(device->builds, 2);
}

// What a solver says before is what its plan says, and what explain reports.
TEST(Plan, WorkspaceIsKnownBeforeThePlan) {
  const std::shared_ptr<devices::Device> devices[] = {std::make_shared<devices::CpuDevice>(1),
                                                      std::make_shared<devices::CpuDevice>(3),
                                                      std::make_shared<CountingDevice>()};
  int compared = 0;
  for (const char* text : {"filter2d u8 h40w50c3r5s5 kernel:random", "filter2d s32 h40w50r5s5 kernel:equal",
                           "filter2d f32 h400w5000r9s5 kernel:rank1", "filter2d f64 h40w50r3s5 kernel:rank1"}) {
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    const Filter filter = filter_for(problem);
    for (const auto& device : devices)
      for (const Candidate& candidate : explain(Context(device), problem, filter)) {
        if (!candidate.applicable) continue;
        const Filter2dPlan plan(Context(device), problem, filter, {.solver = candidate.solver});
        EXPECT_EQ(candidate.workspace_bytes, plan.workspace_bytes()) << text << " " << candidate.solver;
        ++compared;
      }
  }
  EXPECT_GT(compared, 12);
}

TEST(Plan, NamesTheCpuWhereItWouldServe) {
  const Context context(std::make_shared<CountingDevice>());
  const std::string message = plan_refusal(context, "filter2d f64 h8w8r1s3", {.weights = std::vector<double>{1, 2, 3}});
  EXPECT_TRUE(message.starts_with("no solver on counting serves filter2d f64")) << message;
  EXPECT_TRUE(message.ends_with("; choose the device cpu")) << message;
}

TEST(Floor, CountsTheMultiplyAddsThatTheWeightsAllow) {
  const auto least = [](const char* text) {
    const auto problem = get<Filter2dProblem>(parse_problem(text));
    const Problem any(problem);
    const operations::Figures figures =
        any.operation().figures(operations::AnyTask(task_for(problem, filter_for(problem))));
    return figures.least_operations / 2 / static_cast<double>(P(problem) * Q(problem) * problem.c);
  };
  EXPECT_EQ(least("filter2d u8 h64w80c3r7s9"), 63);
  EXPECT_EQ(least("filter2d u8 h64w80c3r7s9 kernel:rank1"), 16);
  EXPECT_EQ(least("filter2d u8 h64w80c3r1s9 kernel:rank1"), 9);  // a column of one weight costs nothing
  EXPECT_EQ(least("filter2d u8 h64w80c3r31s31 kernel:equal"), 4);
  EXPECT_EQ(least("filter2d u8 h64w80c3r1s3 kernel:equal"), 3);
  EXPECT_EQ(least("filter2d u8 h64w80c3r3s3 kernel:sobel"), 12);  // each of the pair is a column times a row
}

}  // namespace
}  // namespace omniconv
