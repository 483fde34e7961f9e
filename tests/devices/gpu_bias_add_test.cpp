// bias_add on GPU devices: every pass, type and layout, sums of one part and of several, arrays that begin anywhere.
#include <array>
#include <cmath>
#include <limits>

#include "../conformance/matrix_testing.h"
#include "gpu_testing.h"
#include "omniconv/bias_add.h"

namespace omniconv::gpu_bias_add_tests {
namespace {

using GpuBiasAdd = Gpu;
constexpr const char* solver = "bias_add/direct/gpu.1";

BiasAddProblem bias_add(const std::string& text) {
  return get<BiasAddProblem>(parse_problem("bias_add " + text));
}

TEST_F(GpuBiasAdd, EveryPassTypeAndLayout) {
  const Context context(device);
  for (const char* const pass : {"fwd", "bwd", "fwd relu", "bwd relu"})
    for (const char* const layout : {"nchw", "nhwc"})
      for (const char* const type : {"f32", "f16", "bf16"})
        for (const char* const geometry :
             {"n2c8h16w16", "n1c3h17w41", "n1c1h1w1", "n70c10h1w1", "n5c130h2w2", "n3c33h1w3"})
          EXPECT_EQ(expect_exact_and_bounded(
                        context, parse_problem(fmt::format("bias_add {} {} {} {}", pass, layout, type, geometry)),
                        {.solver = {.solver = solver}}),
                    1);
}

// More than a group reads while a second launch begins and ends, so that there is one; and none without a workspace.
TEST_F(GpuBiasAdd, SumsInParts) {
  const Context context(device);
  for (const char* const text : {"bwd n3c1h200w200", "bwd n3c2h201w199", "bwd nhwc n3c132h50w51",
                                 "bwd relu n3c2h201w199", "bwd relu nhwc n3c132h50w51", "bwd nhwc f16 n6c260h40w20",
                                 "bwd nhwc n3c4h200w200", "bwd nhwc bf16 n3c3h200w200"}) {
    const Problem problem = bias_add(text);
    for (const std::int64_t limit : {-1, 0}) {
      const SolverOptions options{.solver = solver, .max_workspace_bytes = limit};
      const std::int64_t bytes = Plan(context, problem, options).workspace_bytes();
      EXPECT_EQ(bytes > 0, limit < 0) << text << ' ' << bytes;
      EXPECT_EQ(expect_exact_and_bounded(context, problem, {.solver = options}), 1) << text;
    }
  }
}

// The f32 result of an array that begins so many elements behind its buffer's begin.
std::vector<float> sums(const Context& context, const BiasAddProblem& problem, const std::vector<float>& dy,
                        std::int64_t before) {
  Queue queue = context.make_queue();
  const auto bytes = static_cast<std::int64_t>(dy.size() * 4), of_sums = problem.c * 4;
  const BiasAddPlan plan(context, problem);
  const BiasAddRun run{.b = {context.allocate(of_sums + before * 4), before * 4},
                       .y = {context.allocate(bytes + before * 4), before * 4},
                       .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))};
  queue.upload(run.y.buffer, before * 4, dy.data(), bytes).wait();
  plan.run(queue, run).wait();
  std::vector<float> result(static_cast<std::size_t>(problem.c));
  queue.download(result.data(), run.b.buffer, before * 4, of_sums).wait();
  return result;
}

TEST_F(GpuBiasAdd, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* const text : {"bwd n6c5h12w8", "bwd nhwc n6c8h9w5", "bwd n300c4h1w1"}) {
    const BiasAddProblem problem = bias_add(text);
    const std::int64_t inner = problem.layout == Layout::nhwc ? 1 : problem.h * problem.w;
    std::vector<float> dy, expected(static_cast<std::size_t>(problem.c), 0);
    for (std::int64_t i = 0; i < problem.n * problem.c * problem.h * problem.w; ++i) {
      dy.push_back(static_cast<float>(i * 31 % 17 - 8));
      expected[static_cast<std::size_t>(i / inner % problem.c)] += dy.back();
    }
    for (const std::int64_t before : {0, 1, 2, 3, 4, 7})
      EXPECT_EQ(sums(context, problem, dy, before), expected) << text << before;
  }
}

TEST_F(GpuBiasAdd, ForwardArraysBeginAnywhere) {
  const Context context(device);
  const BiasAddProblem problem = bias_add("n3c5h13w11");  // two groups, the last one not whole
  std::vector<float> x, b, expected;
  for (std::int64_t c = 0; c < problem.c; ++c) b.push_back(static_cast<float>(c * 100));
  for (std::int64_t i = 0; i < 3 * 5 * 143; ++i) {
    x.push_back(static_cast<float>(i % 97));
    expected.push_back(x.back() + b[static_cast<std::size_t>(i / 143 % 5)]);
  }
  Queue queue = context.make_queue();
  const BiasAddPlan plan(context, problem);
  const auto bytes = static_cast<std::int64_t>(x.size() * 4);
  for (const auto& [of_x, of_b, of_y] : {std::array{0, 0, 0}, std::array{4, 0, 0}, std::array{0, 12, 0},
                                         std::array{0, 0, 8}, std::array{16, 4, 32}, std::array{4, 8, 12}}) {
    const BiasAddRun run{.x = {context.allocate(bytes + of_x), of_x},
                         .b = {context.allocate(20 + of_b), of_b},
                         .y = {context.allocate(bytes + of_y), of_y}};
    queue.upload(run.x.buffer, of_x, x.data(), bytes).wait();
    queue.upload(run.b.buffer, of_b, b.data(), 20).wait();
    plan.run(queue, run).wait();
    std::vector<float> y(x.size());
    queue.download(y.data(), run.y.buffer, of_y, bytes).wait();
    EXPECT_EQ(y, expected) << of_x << ' ' << of_b << ' ' << of_y;
  }
}

TEST_F(GpuBiasAdd, NumbersThatAreNone) {
  const Context context(device);
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> dy(400, 1);
  dy[3] = infinity, dy[113] = nan, dy[224] = infinity, dy[225] = -infinity;
  const std::vector<float> db = sums(context, bias_add("bwd n1c4h10w10"), dy, 0);
  EXPECT_EQ(db[0], infinity);
  EXPECT_TRUE(std::isnan(db[1]) && std::isnan(db[2]));
  EXPECT_EQ(db[3], 100);
}

TEST_F(GpuBiasAdd, RefusesF64) {
  const Context context(device);
  const std::string error = error_of([&] { BiasAddPlan(context, bias_add("f64 n1c1h4w4")); }, ErrorKind::bad_input);
  EXPECT_HAS(error, "f64 is served on the CPU, since not every GPU has double precision");
}

}  // namespace
}  // namespace omniconv::gpu_bias_add_tests
