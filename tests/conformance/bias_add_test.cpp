// bias_add: every solver of the CPU against the definition, the sum against the addition that it belongs to, cuts of
// long sums; the operation's bad input.
#include "omniconv/bias_add.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <vector>

#include "../error_testing.h"
#include "../list_testing.h"
#include "conformance.h"
#include "matrix_testing.h"
#include "operations/bias_add/bias_add.h"
#include "solver_testing.h"

namespace omniconv::bias_add_tests {
namespace {

constexpr const char* bias_solvers[] = {"bias_add/direct/cpu.1", "bias_add/double/cpu.1"};

BiasAddProblem bias_add(const std::string& text) {
  return get<BiasAddProblem>(parse_problem("bias_add " + text));
}

// The f32 result of one array, or of x and b.
std::vector<float> result_of(const Context& context, const BiasAddProblem& problem, const SolverOptions& options,
                             const std::vector<float>& given, const std::vector<float>& b = {}) {
  Queue queue = context.make_queue();
  const auto operand = [&](const std::vector<float>& values) {
    const Operand array{context.allocate(static_cast<std::int64_t>(values.size() * 4))};
    queue.upload(array.buffer, 0, values.data(), static_cast<std::int64_t>(values.size() * 4)).wait();
    return array;
  };
  std::vector<float> result(problem.backward ? static_cast<std::size_t>(problem.c) : given.size(), -7);
  const Operand from = operand(given), to = operand(result);
  const BiasAddPlan plan(context, problem, options);
  BiasAddRun run{.x = from, .b = problem.backward ? to : operand(b), .y = to};
  if (problem.backward) run.x = {}, run.y = from;
  run.workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
  plan.run(queue, run).wait();
  queue.download(result.data(), to.buffer, 0, static_cast<std::int64_t>(result.size() * 4)).wait();
  return result;
}

TEST(BiasAdd, EveryPassTypeAndLayoutAtAnyInstructionSet) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    const Context context({.device = "cpu", .threads = 2});
    for (const char* const pass : {"fwd", "bwd", "fwd relu", "bwd relu"})
      for (const char* const layout : {"nchw", "nhwc"})
        for (const char* const type : {"f32", "f64", "f16", "bf16"})
          for (const char* const geometry : {"n2c3h7w9", "n1c1h1w1", "n3c65h1w1", "n2c129h5w1", "n9c3h31w29",
                                             "n1c513h2w3", "n1c5h129w131", "n40c2h3w1"})
            EXPECT_EQ(expect_exact_and_bounded(
                          context, parse_problem(fmt::format("bias_add {} {} {} {}", pass, layout, type, geometry)),
                          {.solver = {.solver = "all"}, .sampled = true, .samples = 4000}),
                      2);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(BiasAdd, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  for (BiasAddProblem problem : listed_problems<BiasAddProblem>("biases.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 64);
    problem.c = std::min<std::int64_t>(problem.c, 18);
    problem.h = std::min<std::int64_t>(problem.h, 40);
    EXPECT_EQ(
        expect_exact_and_bounded(context, problem, {.solver = {.solver = "all"}, .sampled = true, .samples = 200}), 2)
        << to_text(problem);
  }
}

// sum of dy * (0 + b) is the sum of db * b, of integers to the bit.
TEST(BiasAdd, BackwardIsTheAdjoint) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const geometry : {"n3c5h4w7", "nhwc n3c5h4w7", "n70c19h1w1"}) {
    const BiasAddProblem forward = bias_add(geometry), backward = bias_add(std::string("bwd ") + geometry);
    std::vector<float> dy(static_cast<std::size_t>(operations::elements_of(forward))), b;
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i * 7 % 11) - 5;
    for (std::int64_t c = 0; c < forward.c; ++c) b.push_back(static_cast<float>(c * 5 % 7) - 3);
    const std::vector<float> zeros(dy.size(), 0);
    for (const char* const solver : bias_solvers) {
      const std::vector<float> y = result_of(context, forward, {.solver = solver}, zeros, b),
                               db = result_of(context, backward, {.solver = solver}, dy);
      double of_y = 0, of_b = 0;
      for (std::size_t i = 0; i < dy.size(); ++i) of_y += static_cast<double>(dy[i]) * y[i];
      for (std::size_t c = 0; c < b.size(); ++c) of_b += static_cast<double>(db[c]) * b[c];
      EXPECT_EQ(of_y, of_b) << geometry << ' ' << solver;
      EXPECT_NE(of_b, 0);
    }
  }
}

// Sums of a channel that are cut into pieces, and are not where there is no workspace; the bits do not depend on
// threads.
TEST(BiasAdd, LongSumsAreCut) {
  for (const char* const text :
       {"bwd n9c2h200w201", "bwd nhwc n9c3h200w201", "bwd n200000c1h1w1", "bwd n9000c70h1w1"}) {
    const BiasAddProblem problem = bias_add(text);
    std::vector<float> dy(static_cast<std::size_t>(operations::elements_of(problem)));
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = static_cast<float>(i * 2654435761u % 1000) / 1000 - 0.3f;
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      const Context context({.device = "cpu", .threads = threads});
      EXPECT_GT(BiasAddPlan(context, problem).workspace_bytes(), 0) << text;
      results.push_back(result_of(context, problem, {}, dy));
      EXPECT_EQ(results.back(), results.front()) << text << ' ' << threads;
      const SolverOptions none{.max_workspace_bytes = 0};
      EXPECT_EQ(BiasAddPlan(context, problem, none).workspace_bytes(), 0);
      EXPECT_EQ(BiasAddPlan(context, problem, none).solver(), bias_solvers[0]);
      const std::vector<float> whole = result_of(context, problem, none, dy);
      for (std::size_t c = 0; c < whole.size(); ++c) EXPECT_NEAR(whole[c], results.back()[c], 1e-4 * whole[c]);
    }
  }
}

// The bits of a relu's gradient, and of the sum of it; NaN in y passes.
TEST(BiasAdd, ReluBackwardIsOneAfterTheOther) {
  const Context context({.device = "cpu", .threads = 2});
  Queue queue = context.make_queue();
  for (const char* const geometry : {"n3c5h4w7", "nhwc n3c5h4w7", "n9c2h200w201", "nhwc n40c1100h3w1", "n70c19h1w1"}) {
    const BiasAddProblem problem = bias_add(std::string("bwd relu ") + geometry);
    const auto bytes = operations::elements_of(problem) * 4;
    std::vector<float> dy(static_cast<std::size_t>(bytes / 4)), y = dy, expected = dy, dx = dy;
    for (std::size_t i = 0; i < dy.size(); ++i) {
      dy[i] = static_cast<float>(i * 2654435761u % 1000) / 1000 - 0.3f;
      y[i] = static_cast<float>(i * 7 % 11) - 4;
      if (i == 13) y[i] = std::numeric_limits<float>::quiet_NaN();
      expected[i] = y[i] <= 0 ? 0 : dy[i];
    }
    BiasAddProblem plain = problem;
    plain.relu = false;
    for (const char* const solver : bias_solvers) {
      const BiasAddPlan plan(context, problem, {.solver = solver});
      const BiasAddRun run{.x = {context.allocate(bytes)},
                           .b = {context.allocate(problem.c * 4)},
                           .y = {context.allocate(bytes)},
                           .output = {context.allocate(bytes)},
                           .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))};
      queue.upload(run.y.buffer, 0, dy.data(), bytes).wait();
      queue.upload(run.output.buffer, 0, y.data(), bytes).wait();
      plan.run(queue, run).wait();
      queue.download(dx.data(), run.x.buffer, 0, bytes).wait();
      EXPECT_EQ(dx, expected) << geometry << ' ' << solver;
      std::vector<float> db(static_cast<std::size_t>(problem.c));
      queue.download(db.data(), run.b.buffer, 0, problem.c * 4).wait();
      EXPECT_EQ(db, result_of(context, plain, {.solver = solver}, expected)) << geometry << ' ' << solver;
    }
  }
}

TEST(BiasAdd, NumbersThatAreNone) {
  const Context context({.device = "cpu", .threads = 1});
  const float endless = std::numeric_limits<float>::infinity(), nothing = std::numeric_limits<float>::quiet_NaN();
  for (const char* const solver : bias_solvers) {
    const SolverOptions options{.solver = solver};
    std::vector<float> dy(40, 1);
    dy[3] = endless, dy[13] = nothing, dy[24] = endless, dy[25] = -endless;
    const std::vector<float> db = result_of(context, bias_add("bwd n1c4h1w10"), options, dy);
    EXPECT_EQ(db[0], endless) << solver;
    EXPECT_TRUE(std::isnan(db[1]) && std::isnan(db[2])) << solver;
    EXPECT_EQ(db[3], 10) << solver;
  }
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(BiasAdd, BadInput) {
  const auto refusal = [](const std::string& text) { return error_of([&] { bias_add(text); }, ErrorKind::bad_input); };
  expect_part(refusal("n1c2h3"), "w (columns)");
  expect_part(refusal("n0c2h3w4"), "n is 0");
  expect_part(refusal("u8 n1c2h3w4"), "u8");
  expect_part(refusal("bwd_data n1c2h3w4"), "bwd_data");
  expect_part(refusal("n9223372036854775807c2h3w4"), "the input");
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const BiasAddPlan plan(context, bias_add("n2c3h4w5"));
  const Operand x{context.allocate(480)}, b{context.allocate(12)};
  expect_part(error_of([&] { plan.run(queue, {.x = x, .b = b}); }, ErrorKind::bad_input), "y");
  expect_part(error_of(
                  [&] {
                    plan.run(queue, {.x = x, .b = {b.buffer, 4}, .y = {context.allocate(480)}});
                  },
                  ErrorKind::bad_input),
              "b");
  expect_part(error_of([&] { plan.run(queue, {.x = x, .b = b, .y = x}); }, ErrorKind::bad_input), "overlap");
}

}  // namespace
}  // namespace omniconv::bias_add_tests
