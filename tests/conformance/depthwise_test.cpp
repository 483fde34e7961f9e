// conv2d/depthwise on the CPU: edges, strides, dilations, multipliers, tiles and parts, whatever else serves the
// problems.
#include <cmath>
#include <limits>
#include <vector>

#include "../error_testing.h"
#include "conformance.h"
#include "conv2d_testing.h"

namespace omniconv {
namespace {

constexpr const char* depthwise_cpu = "conv2d/depthwise/cpu.1";

Context on_threads(int threads = 2) {
  return Context({.device = "cpu", .threads = threads});
}

std::int64_t depthwise_workspace(const Conv2dProblem& problem, std::int64_t limit) {
  for (const Candidate& candidate : explain(on_threads(), problem, {.max_workspace_bytes = limit}))
    if (candidate.solver == depthwise_cpu) return candidate.workspace_bytes;
  return -1;
}

// Exact on small integers and within its bound on random numbers, by this solver alone.
void expect_served(const Conv2dProblem& problem, std::int64_t limit = -1) {
  const checking::VerifyOptions options{.solver = {.solver = depthwise_cpu, .max_workspace_bytes = limit}};
  EXPECT_EQ(expect_exact_and_bounded(on_threads(), problem, options), 1) << to_text(problem);
}

// Strides and dilations that share divisors, and those that do not; strides that pass outputs by; more taps than are
// taken at once; rows shorter than a vector; several filters of a channel; vectors that channels do not fill.
TEST(Depthwise, EveryPassLayoutAndType) {
  int number = 0;
  for (const char* geometry :
       {"n2c8h29w12k8r3s3p1g8", "n2c6h25w43k6r3s3p1u2g6", "n3c37h17w17k37r3s3p1g37",
        "n2c4h20w21k4r3s2pt2pl1dh2dw3uh3uw2g4", "n1c4h11w56k8r5s5p2g4", "n2c4h20w20k4r3s3p2d2u2g4",
        "n2c4h27w11k4r4s4u4g4", "n1c3h1w258k9r3s3p1g3", "n2c12h30w24k12r2s3u2p1g12", "n1c1h17w19k1r5s3p2",
        "n1c2h30w40k4r9s17p8g2", "n1c3h40w17k3r16s1p8g3", "n2c4h17w16k4r1s1u3g4", "n2c8h18w18k8r3s3d4p4g8",
        "n1c20h9w9k60r3s3p1uw3g20", "n1c2h5w5k2r2s2u5p3g2"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words :
           {"fwd bias relu acc", "bwd_data acc", "bwd_filter acc", "fwd flip", "bwd_data flip", "bwd_filter flip"}) {
        const char* const type =
            std::array{"f32", "f16", "f64", "bf16", "tf32"}[static_cast<std::size_t>(number++ % 5)];
        if (instrumented && number % 3 != 0) continue;
        expect_served(conv2d_problem(fmt::format("{} {} {} {}", words, type, layout, geometry)));
      }
}

// A tap alone is not dilated, however large the number.
TEST(Depthwise, OneTapHasNoDilation) {
  for (const char* words : {"fwd", "bwd_data", "bwd_filter"})
    expect_served(conv2d_problem(fmt::format("{} n1c2h7w9k2r1s1d4611686018427387904g2", words)));
}

// What no output reads with a tap is no term of its gradient: columns beside the last one's.
TEST(Depthwise, GradientsReadNoMoreThanTheyAreOf) {
  const Conv2dProblem problem = conv2d_problem("bwd_filter n1c1h3w6k1r3s3");
  std::vector<float> x(18, 1.0f), w(9), y(4, 1.0f);
  for (std::size_t row = 0; row < 3; ++row) x[row * 6 + 5] = std::numeric_limits<float>::infinity();
  const Context context = on_threads();
  const auto borrow = [&](std::vector<float>& values) {
    return Operand{context.borrow(values.data(), static_cast<std::int64_t>(values.size() * sizeof(float)))};
  };
  const Conv2dPlan plan(context, problem, {.solver = depthwise_cpu});
  Queue queue = context.make_queue();
  plan.run(queue,
           {.x = borrow(x), .w = borrow(w), .y = borrow(y), .workspace = context.allocate(plan.workspace_bytes())})
      .wait();
  for (std::size_t i = 0; i < 9; ++i) EXPECT_EQ(w[i], i % 3 == 2 ? std::numeric_limits<float>::infinity() : 4.0f) << i;
}

// Tiles of a plane that is larger than they are, and parts of the filter's sums, without a limit and under one.
TEST(Depthwise, TilesAndParts) {
  for (const char* geometry : {"n1c2h130w1100k2r3s3p1g2", "n2c3h300w70k3r3s3p1u2g3", "n1c20h60w150k20r3s3p2d2g20"})
    for (const Pass pass : all_passes)
      for (const char* layout : {"nchw", "nhwc"}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} {}", layout, geometry)), pass);
        const std::int64_t least = depthwise_workspace(problem, 0), whole = depthwise_workspace(problem, -1);
        // Of the filter's gradient tiles decide the order of sums, and no limit changes them.
        if (pass == Pass::backward_filter)
          EXPECT_EQ(least, whole) << to_text(problem);
        else
          EXPECT_LT(least, whole) << to_text(problem);
        for (const std::int64_t limit : {std::int64_t{-1}, (least + whole) / 2, least}) {
          EXPECT_TRUE(limit < 0 || depthwise_workspace(problem, limit) <= limit) << to_text(problem);
          const checking::VerifyOptions options{.solver = {.solver = depthwise_cpu, .max_workspace_bytes = limit},
                                                .sampled = true,
                                                .samples = samples(2000)};
          EXPECT_EQ(expect_exact_and_bounded(on_threads(), problem, options), 1) << to_text(problem);
        }
      }
}

TEST(Depthwise, PassesAreAdjoint) {
  std::uint64_t seed = 1;
  for (const char* text : {"n2c5h14w30k10r3s3p1u2g5", "nhwc n2c19h9w12k19r5s4p2d2g19", "n1c3h20w33k3r7s2p4uh3dw3g3"})
    expect_adjoint(on_threads(), conv2d_problem(text), depthwise_cpu, seed++);
}

TEST(Depthwise, ArraysBeginAnywhere) {
  for (const char* text : {"n2c5h14w30k10r3s3p1u2g5", "nhwc n2c19h9w12k19r3s3p1g19"})
    for (const Pass pass : all_passes)
      expect_same_wherever_arrays_begin(on_threads(), with_pass(conv2d_problem(text), pass), depthwise_cpu);
}

// The bits do not follow from the number of threads.
TEST(Depthwise, ThreadsChangeNothing) {
  for (const char* text : {"bwd_filter n3c4h90w110k4r3s3p1g4", "bwd_filter nhwc n3c4h90w110k8r3s3p1g4",
                           "n3c4h90w110k4r3s3p1g4", "bwd_data nhwc n3c4h90w110k4r3s3p1u2g4"}) {
    const Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements elements = elements_of(problem);
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 5}) {
      const Context context = on_threads(threads);
      Queue queue = context.make_queue();
      const auto values = [](std::int64_t count, std::uint64_t seed) {
        std::vector<float> made(static_cast<std::size_t>(count));
        operations::fill_random(DataType::f32, 0, seed, std::as_writable_bytes(std::span(made)));
        return made;
      };
      std::vector<float> x = values(elements.x, 1), w = values(elements.w, 2), y = values(elements.y, 3);
      const Conv2dPlan plan(context, problem, {.solver = depthwise_cpu});
      plan.run(queue, {.x = {context.borrow(std::span(x))},
                       .w = {context.borrow(std::span(w))},
                       .y = {context.borrow(std::span(y))},
                       .workspace = context.allocate(plan.workspace_bytes())})
          .wait();
      results.push_back(problem.pass == Pass::forward ? y : problem.pass == Pass::backward_data ? x : w);
    }
    EXPECT_EQ(results[0], results[1]) << text;
    EXPECT_EQ(results[0], results[2]) << text;
  }
}

TEST(Depthwise, IsChosen) {
  for (const char* geometry : {"n4c256h56w56k256r3s3p1g256", "n1c960h7w7k960r3s3p1g960", "n2c64h112w112k64r3s3p1u2g64"})
    for (const Pass pass : all_passes)
      for (const char* layout : {"nchw", "nhwc"}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} {}", layout, geometry)), pass);
        EXPECT_EQ(explain(on_threads(), problem, {}).front().solver, depthwise_cpu) << to_text(problem);
      }
}

TEST(Depthwise, Refusals) {
  const auto refused = [](const std::string& text) {
    return error_of([&] { Conv2dPlan(on_threads(), conv2d_problem(text), {.solver = depthwise_cpu}); });
  };
  const auto expect_says = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_says(refused("n1c4h8w8k4r3s3g2"), "serves groups of one channel of x alone");
  expect_says(refused("n1c1h8w8k4r3s3"), "leaves several filters of one channel");
  expect_says(refused("n1c2h80w8k2r65s1g2"), "filters of at most 64 taps");
  expect_says(refused("n1c2h8w900k2r1s3dw300g2"), "that reach 512 elements");
  expect_says(refused("n1c2h40w8k2r1s1uh17g2"), "strides of at most 16");
}

}  // namespace
}  // namespace omniconv
