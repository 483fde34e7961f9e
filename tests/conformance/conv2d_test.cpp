// conv2d on the CPU: every solver, pass, layout and type.
#include <cmath>
#include <span>

#include "../devices/recording_device.h"
#include "../error_testing.h"
#include "conformance.h"
#include "conv2d_testing.h"
#include "core/checked.h"
#include "operations/solver.h"
#include "relu_testing.h"

namespace omniconv {
namespace {

Context processor() {
  return Context({.device = "cpu", .threads = 2});
}

TEST(Conv2d, Tails) {
  check_tails(processor(), Variants::all);
}

TEST(Conv2d, TypesAndWhatIsFused) {
  check_types(processor(), {"f32", "f64", "f16", "bf16", "tf32"}, Variants::all);
}

TEST(Conv2d, ReluOfAnything) {
  expect_relu_of_anything(processor(), {"f32", "f64", "f16", "bf16", "tf32"}, Variants::all);
}

// The studies' and anchors' layers with one image, a pass of each in turn.
TEST(Conv2d, LayersOfLists) {
  std::size_t number = 0;
  for (const char* list : {"studies.txt", "anchors.txt"})
    for (Conv2dProblem problem : listed_problems<Conv2dProblem>(list)) {
      if (++number % layers_between != 0) continue;
      problem.n = 1;
      expect_exact_and_bounded(processor(), with_pass(problem, all_passes[number % 3]),
                               {.sampled = true, .samples = 40});
    }
}

TEST(Conv2d, PassesAreAdjoint) {
  std::mt19937_64 random(7);
  for (int i = 0; i < (threads_watched ? 30 : 150); ++i) {
    const Conv2dProblem problem = random_conv2d(random);
    for (const char* solver : {"conv2d/direct", "conv2d/im2col_gemm", "conv2d/double"})
      expect_adjoint(processor(), problem, solver, static_cast<std::uint64_t>(i));
  }
}

// Rows, and channels under nhwc, of more elements than are added up at a time.
TEST(Conv2d, WideGradients) {
  for (const char* text : {"bwd_data n1c2h3w700k2r2s3p1", "bwd_data n1c1h2w600k2r1s4p1uw3",
                           "bwd_data nhwc n1c600h2w3k2r2s2", "bwd_data acc f64 n1c1h2w520k2r1s3dw2"})
    EXPECT_GE(expect_exact_and_bounded(processor(), conv2d_problem(text), {.solver = {.solver = "all"}}), 3) << text;
}

TEST(Conv2d, ReluLeavesNan) {
  const Context context = processor();
  Queue queue = context.make_queue();
  for (const char* solver : {"conv2d/direct/cpu.1", "conv2d/im2col_gemm/cpu.1", "conv2d/double/cpu.1"}) {
    const Conv2dPlan plan(context, conv2d_problem("relu n1c1h1w5k1r1s1"), {.solver = solver});
    std::vector<float> x{-1, NAN, 2, -INFINITY, 0}, w{1}, y(5, 7);
    plan.run(queue, {.x = {context.borrow(std::span(x))},
                     .w = {context.borrow(std::span(w))},
                     .y = {context.borrow(std::span(y))},
                     .workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1))})
        .wait();
    EXPECT_TRUE(std::isnan(y[1])) << solver;
    y[1] = 9;
    EXPECT_EQ(y, (std::vector<float>{0, 9, 2, 0, 0})) << solver;
  }
}

// Columns in parts of single rows and images give what they give at once.
TEST(Conv2d, WorkspaceLimits) {
  for (const char* text : {"n3c8h20w20k12r3s3p1", "nhwc n3c8h20w20k12r3s3p1g2", "n5c4h9w9k8r1s1",
                           "n1c8h7w7k70r3s3p1"})  // the last of 49 pixels stands alone
    for (const Pass pass : all_passes) {
      const Conv2dProblem problem = with_pass(conv2d_problem(text), pass);
      const auto least = [&](std::int64_t limit) {
        const std::vector<Candidate> candidates =
            explain(processor(), problem, {.max_workspace_bytes = limit, .allow = {"conv2d/im2col_gemm"}});
        return candidates.front().workspace_bytes;
      };
      const std::int64_t whole = least(-1), smallest = least(0);
      EXPECT_LE(smallest, whole) << to_text(problem);
      for (const std::int64_t limit : {smallest, (smallest + whole) / 2, whole}) {
        EXPECT_LE(least(limit), limit) << to_text(problem);
        expect_exact_and_bounded(processor(), problem,
                                 {.solver = {.max_workspace_bytes = limit, .allow = {"conv2d/im2col_gemm"}}});
      }
    }
}

// Forward under nchw reads x itself or a padded copy, taken apart by stride: every way to cut these, to the bit alike.
TEST(Conv2d, PaddedImages) {
  int number = 0;
  for (const char* geometry :
       {"n5c3h7w7k20r3s3p1", "n3c4h9w40k5r3s3p1", "n2c3h21w37k7r7s7p3u2", "n3c5h12w13k33r1s1u2", "n4c8h9w9k8r3s3p2g8",
        "n2c4h17w23k3r4s5pt3pl2pb1pr4uh3uw2d2", "n2c2h30w19k4r2s3p1u4d3", "n2c3h20w20k10r5s5", "n3c6h6w6k40r1s1",
        "n2c3h11w70k6r2s2uh2", "n2c4h10w11k6r3s3d3uw3p4g2", "n1c2h9w9k3r3s3p1u5"})
    for (const char* words : {"f32", "flip bias relu acc f32", "f16", "acc f64", "bias bf16"}) {
      if (threads_watched && number++ % 2 != 0) continue;  // the others for the next geometry
      const Conv2dProblem problem = conv2d_problem(fmt::format("{} {}", words, geometry));
      const auto bytes = [&](std::int64_t limit) {
        return explain(processor(), problem, {.max_workspace_bytes = limit, .allow = {"conv2d/im2col_gemm"}})
            .front()
            .workspace_bytes;
      };
      for (const std::int64_t limit : {std::int64_t{-1}, bytes(-1) / 2, bytes(0)})
        expect_exact_and_bounded(processor(), problem,
                                 {.solver = {.max_workspace_bytes = std::max(limit, limit < 0 ? limit : bytes(0)),
                                             .allow = {"conv2d/im2col_gemm"}}});
    }
}

// Where more lies between taps than they read, columns are written: whole images, or parts of few rows, whose copies
// would overlap.
TEST(Conv2d, DilatedImages) {
  struct Case {
    const char* geometry;
    std::int64_t columns;  // bytes of f32 columns of one row of output
  };
  for (const auto& [geometry, columns] :
       {Case{"n3c1h1w1k1r3s3p1000000d1000000", 9 * 4}, Case{"n1c1h1w1k1r3s3p1000000000d1000000000", 9 * 4},
        Case{"n2c3h9w9k4r3s3p12d12", 3 * 9 * 9 * 4}, Case{"n2c8h24w24k5r3s3p4d4", 8 * 9 * 24 * 4},
        Case{"n2c4h20w21k6r3s3ph12pw2dh12dw2g2", 4 * 9 * 21 * 4}})
    for (const char* words : {"f32", "flip bias relu acc f32", "f16", "bf16"}) {
      const Conv2dProblem problem = conv2d_problem(fmt::format("{} {}", words, geometry));
      const auto bytes = [&](std::int64_t limit) {
        return explain(processor(), problem, {.max_workspace_bytes = limit, .allow = {"conv2d/im2col_gemm"}})
            .front()
            .workspace_bytes;
      };
      const std::int64_t of_column = round_up(columns * size_of(problem.type) / 4, 256);
      const std::int64_t of_product = 64 << 10;  // panels of filters and of columns, at the least
      EXPECT_LE(bytes(0), of_column + of_product) << to_text(problem);
      for (const std::int64_t limit : {std::int64_t{-1}, bytes(-1), (bytes(-1) + bytes(0)) / 2, bytes(0)}) {
        EXPECT_TRUE(limit < 0 || bytes(limit) <= limit) << to_text(problem);
        expect_exact_and_bounded(processor(), problem,
                                 {.solver = {.max_workspace_bytes = limit, .allow = {"conv2d/im2col_gemm"}}});
      }
    }
}

// An image that is cut by rows would be copied again and again: what columns take is less, and is what it costs.
TEST(Conv2d, DilatedImagesThatAreCut) {
  const auto explained = [](const char* text, std::int64_t limit) {
    return explain(processor(), conv2d_problem(text), {.max_workspace_bytes = limit, .allow = {"conv2d/im2col_gemm"}})
        .front();
  };
  const char* const dilated = "n1c2048h33w33k256r3s3p36d36";
  EXPECT_LE(explained(dilated, 0).workspace_bytes, std::int64_t{3} << 20);
  EXPECT_LE(explained(dilated, -1).workspace_bytes, std::int64_t{8} << 20);
  // 9 rows at a time of 64, each part with 16 more; without dilation 28 rows at a time, with 2 more.
  const double more = (8 * 16 + 64) * 80 - (3 * 2 + 64) * 66, bytes = 2 * 2048 * 4 * more;
  const Context context = processor();
  EXPECT_GE(explained("n1c2048h64w64k64r3s3p8d8", -1).cost - explained("n1c2048h64w64k64r3s3p1", -1).cost,
            bytes * operations::byte_cost(*context.impl()));
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Conv2d, RefusalsOfRuns) {
  const Context context = processor();
  const Conv2dProblem problem = conv2d_problem("bias n1c2h4w4k3r3s3p1");
  const Conv2dPlan plan(context, problem, {.solver = "conv2d/im2col_gemm/cpu.1"});
  const Conv2dElements elements = elements_of(problem);
  Queue queue = context.make_queue();
  const Conv2dRun right{.x = {context.allocate(elements.x * 4)},
                        .w = {context.allocate(elements.w * 4)},
                        .y = {context.allocate(elements.y * 4)},
                        .bias = {context.allocate(12)},
                        .workspace = context.allocate(plan.workspace_bytes())};
  const auto refused = [&](const auto& change) {
    Conv2dRun run = right;
    change(run);
    return error_of([&] { plan.run(queue, run); });
  };
  EXPECT_NO_THROW(plan.run(queue, right).wait());
  EXPECT_SAYS(refused([](Conv2dRun& run) { run.x = {}; }), "the buffer of x is missing");
  EXPECT_SAYS(refused([](Conv2dRun& run) { run.bias = {}; }), "the buffer of bias is missing");
  EXPECT_SAYS(refused([](Conv2dRun& run) { run.w.offset_bytes = 2; }), "w begins at byte 2 of its buffer");
  EXPECT_SAYS(refused([](Conv2dRun& run) { run.w.offset_bytes = -4; }), "w begins at byte -4 of its buffer");
  EXPECT_SAYS(refused([](Conv2dRun& run) { run.y.offset_bytes = 4; }), "the buffer of y has 192 bytes: 48 elements");
  EXPECT_SAYS(refused([](Conv2dRun& run) { run.y = run.w; }), "y and w overlap");
  EXPECT_SAYS(refused([](Conv2dRun& run) { run.workspace = Buffer(); }), "the workspace has 0 bytes");
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.workspace = run.x.buffer; }), "the workspace has 128 bytes");
  Queue none;
  EXPECT_SAYS(error_of([&] { plan.run(none, right); }), "the queue of the run is empty");
}

// Of the caller's memory, where buffers say nothing of what they share.
TEST(Conv2d, RefusalsOfBorrowedMemory) {
  const Context context = processor();
  const Conv2dProblem problem = conv2d_problem("n1c2h4w4k3r3s3p1");
  const Conv2dPlan plan(context, problem, {.solver = "conv2d/im2col_gemm/cpu.1"});
  const Conv2dElements elements = elements_of(problem);
  Queue queue = context.make_queue();
  const std::int64_t workspace = plan.workspace_bytes();
  alignas(64) static std::byte memory[1 << 16];
  ASSERT_LT(workspace + 4096, std::ssize(memory));
  const auto at = [&](std::ptrdiff_t byte, std::int64_t bytes) { return context.borrow(memory + byte, bytes); };
  const Conv2dRun right{.x = {at(0, elements.x * 4)},
                        .w = {at(1024, elements.w * 4)},
                        .y = {at(2048, elements.y * 4)},
                        .workspace = at(4096, workspace)};
  const auto refused = [&](const auto& change) {
    Conv2dRun run = right;
    change(run);
    return error_of([&] { plan.run(queue, run); });
  };
  EXPECT_NO_THROW(plan.run(queue, right).wait());
  const std::string overlap = "y and x overlap in memory: y is written while x is read";
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.y = {at(0, 4096)}; }), overlap);
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.y = {at(64, 4096)}; }), overlap);
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.x = {at(2048 + elements.y * 4 - 4, 1024)}; }), overlap);
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.x = {at(2, elements.x * 4)}; }), "the buffer of x is misaligned");
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.w = {at(1024, elements.w * 4 - 1)}; }),
              "the buffer of w has 215 bytes");
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.workspace = at(4096 + 32, workspace); }),
              "the workspace is misaligned");
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.workspace = at(1024, workspace); }),
              "the workspace and w overlap in memory");
  EXPECT_SAYS(error_of([&] { context.borrow(nullptr, 4); }), "borrowed memory of 4 bytes is a null pointer");
  const auto elsewhere = std::make_shared<devices::RecordingDevice>(devices::DeviceKind::opencl);
  EXPECT_SAYS(refused([&](Conv2dRun& run) { run.x = {Context(elsewhere).allocate(4096)}; }),
              "x is memory of another device, and the plan is of the device cpu");
  Queue other = Context(elsewhere).make_queue();
  EXPECT_SAYS(error_of([&] { plan.run(other, right); }), "to a queue of another device");
}

TEST(Conv2d, RefusalsOfOptions) {
  const auto refused = [](const std::string& text, const SolverOptions& options) {
    return error_of([&] { Conv2dPlan(processor(), conv2d_problem(text), options); });
  };
  const std::string layer = "n1c4h8w8k4r3s3p1";
  EXPECT_SAYS(refused(layer, {.solver = "conv2d/direkt/cpu.1"}), "conv2d/direct/cpu.1");
  EXPECT_SAYS(refused(layer, {.deny = {"conv2d/wino"}}), "unknown solver 'conv2d/wino' in deny");
  EXPECT_SAYS(refused(layer, {.max_workspace_bytes = 16, .allow = {"conv2d/im2col_gemm"}}), "the least that would is");
  EXPECT_SAYS(refused(layer, {.solver = "conv2d/direct/gpu.1"}), "runs on OpenCL and CUDA devices");
  EXPECT_SAYS(refused(layer, {.max_error = 0.5}), "amplified 1 times, and max_error is 0.5");
  EXPECT_SAYS(refused("bwd_data relu " + layer, {}), "relu is of the forward pass, and the pass is bwd_data");
}

}  // namespace
}  // namespace omniconv
