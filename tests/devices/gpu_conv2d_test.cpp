// conv2d on GPU devices: every solver, pass, layout and type.
#include "../conformance/conv2d_testing.h"
#include "../conformance/relu_testing.h"
#include "borrow_testing.h"
#include "gpu_testing.h"

namespace omniconv {
namespace {

using GpuConv2d = Gpu;

TEST_F(GpuConv2d, Tails) {
  check_tails(Context(device), Variants::in_turn);
}

TEST_F(GpuConv2d, TypesAndWhatIsFused) {
  check_types(Context(device), {"f32", "f16", "bf16"}, Variants::in_turn);
}

TEST_F(GpuConv2d, ReluOfAnything) {
  expect_relu_of_anything(Context(device), {"f32", "f16", "bf16"}, Variants::in_turn);
}

TEST_F(GpuConv2d, PassesAreAdjoint) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 6; ++i) {
    const Conv2dProblem problem = random_conv2d(random);
    expect_adjoint(Context(device), problem, i % 2 == 0 ? "conv2d/direct" : "conv2d/im2col_gemm",
                   static_cast<std::uint64_t>(i));
  }
}

// What a run makes of small integers, in buffers that go to `kept`: they end with the arrays, the workspace with what
// the plan says, and nothing was written to that or to the output before.
std::vector<float> made_in_fitting_buffers(const Context& context, const Conv2dProblem& problem, const char* solver,
                                           std::vector<Buffer>& kept) {
  const Conv2dElements elements = elements_of(problem);
  Queue queue = context.make_queue();
  const auto fresh = [&](std::int64_t bytes) { return kept.emplace_back(context.allocate(bytes)); };
  const auto filled = [&](std::int64_t count, int seed) {
    const std::vector<float> values = small_integers(count, seed);
    const Buffer buffer = fresh(bytes_of(values));
    queue.upload(buffer, 0, values.data(), buffer.bytes()).wait();
    return buffer;
  };
  const Pass pass = problem.pass;
  const Conv2dPlan plan(context, problem, {.allow = {solver}});
  const Conv2dRun run{.x = {pass == Pass::backward_data ? fresh(elements.x * 4) : filled(elements.x, 1)},
                      .w = {pass == Pass::backward_filter ? fresh(elements.w * 4) : filled(elements.w, 2)},
                      .y = {pass == Pass::forward ? fresh(elements.y * 4) : filled(elements.y, 3)},
                      .workspace = fresh(plan.workspace_bytes())};
  plan.run(queue, run).wait();
  const Buffer output = (pass == Pass::forward ? run.y : pass == Pass::backward_data ? run.x : run.w).buffer;
  std::vector<float> values(static_cast<std::size_t>(output.bytes() / 4));
  queue.download(values.data(), output, 0, output.bytes()).wait();
  return values;
}

// What else a kernel touches scripts/oclgrind.sh reports. All buffers are kept, since Oclgrind takes memory that was
// given back and taken again for memory that was never written.
TEST_F(GpuConv2d, StaysInsideBuffersThatFit) {
  const Context context(device), cpu({.device = "cpu", .threads = 1});
  std::vector<Buffer> kept;
  for (const char* text : {"n2c3h5w4k5r3s2p1uh2", "nhwc n2c4h4w5k6r2s3p1dh2g2", "n2c4h5w6k4r3s3p1g4"})
    for (const Pass pass : all_passes)
      for (const char* solver :
           {"conv2d/direct", "conv2d/im2col_gemm", "conv2d/implicit_gemm", "conv2d/mma_gemm", "conv2d/depthwise"}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(text), pass);
        if (problem.groups == 1 && std::string_view(solver) == "conv2d/depthwise") continue;
        // Its groups are tiles like any, and its instructions take long under Oclgrind.
        if (problem.groups == 4 && std::string_view(solver) == "conv2d/mma_gemm") continue;
        EXPECT_EQ(made_in_fitting_buffers(context, problem, solver, kept),
                  made_in_fitting_buffers(cpu, problem, "conv2d/double", kept))
            << to_text(problem) << " by " << solver;
      }
}

}  // namespace
}  // namespace omniconv
