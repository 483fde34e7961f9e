// conv2d/mma_gemm on GPU devices: every form of its kernels, whatever else serves the problems. On a processor its
// products are loops.
#include <array>

#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* mma_gemm = "conv2d/mma_gemm/gpu.1";

class GpuMmaGemm : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    for (const Candidate& candidate : explain(Context(device), conv2d_problem("n1c8h4w4k8r3s3"), {}))
      if (candidate.solver == mma_gemm && !candidate.applicable) GTEST_SKIP() << candidate.reason;
  }
  // Exact on small integers and within its bound on random numbers, by this solver alone.
  void expect_served(const std::string& text, const std::string& tuning = {}, std::int64_t workspace_limit = -1) {
    const checking::VerifyOptions options{
        .solver = {.solver = mma_gemm, .max_workspace_bytes = workspace_limit, .tuning = tuning}};
    EXPECT_EQ(expect_exact_and_bounded(Context(device), conv2d_problem(text), options), 1) << text << ' ' << tuning;
  }
};

std::string warp_tile(int tile_m, int tile_n, int tile_k, int warp_m, int warp_n, int parts = 1, int merged = 0) {
  return fmt::format("tile_m={} tile_n={} tile_k={} warp_m={} warp_n={} resident=1 parts={} merged={}", tile_m, tile_n,
                     tile_k, warp_m, warp_n, parts, merged);
}

// A pass, a layout, a type and what is fused of each in turn: a compilation each. Channels that are stages, vectors,
// and neither; stages of one tap and of several; strides and dilations that share divisors, and those that do not.
TEST_F(GpuMmaGemm, GeometriesInEveryPassAndLayout) {
  int number = 0;
  for (const char* geometry : {"n2c32h9w12k20r3s3p1", "n2c12h15w13k10r3s3p1u2", "n3c3h17w13k6r5s5pt2pl1uw2",
                               "n1c9h12w11k5r4s2p2dh3uh2uw3", "n2c32h10w10k32r3s3p1g2", "n1c17h3w20k33r3s3p2"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const int turn = number++;
      const char* const words =
          std::array{"fwd bias relu acc", "bwd_data acc",  "bwd_filter acc",
                     "fwd flip bias",     "bwd_data flip", "bwd_filter flip"}[static_cast<std::size_t>(turn * 5 % 6)];
      const char* const type = std::array{"f32", "f16", "bf16", "tf32", "f32"}[static_cast<std::size_t>(turn % 5)];
      expect_served(fmt::format("{} {} {} {}", words, type, layout, geometry));
    }
}

// Stages of 16 and 32 products, warps of every shape, one and several pixels a work item, operands along products and
// across them.
TEST_F(GpuMmaGemm, TilesOfEveryShape) {
  expect_served("n2c40h9w14k70r3s3p1", warp_tile(128, 64, 32, 32, 32));
  expect_served("bwd_filter nhwc n2c20h9w14k68r3s3p1u2", warp_tile(128, 128, 16, 64, 32));
  expect_served("bwd_data nhwc n2c40h9w14k68r3s3p1u2", warp_tile(64, 128, 32, 64, 32));
  expect_served("bwd_filter n2c20h9w14k70r3s3p1", warp_tile(32, 64, 16, 16, 64));
  expect_served("tf32 bwd_filter nhwc n2c40h9w14k68r3s3p1", warp_tile(64, 32, 32, 32, 16));
  expect_served("bwd_filter nhwc n2c4h9w14k40r3s3p1", warp_tile(128, 16, 32, 32, 16));
  expect_served("n2c40h9w14k10r3s3p1", warp_tile(16, 128, 32, 16, 32));
  expect_served("n2c40h9w14k70r3s3p1", warp_tile(32, 64, 32, 32, 16));
}

// Classes of pixels as rows beside each other, or with pixels that have no tap; some of x's are not there.
TEST_F(GpuMmaGemm, ClassesOfPixels) {
  for (const char* text : {"bwd_data n2c3h15w13k20r3s3p1u2", "bwd_data nhwc acc n2c6h15w13k20r5s4p2d2u3",
                           "bwd_data flip n2c3h13w12k36r7s7p3u2", "bwd_data nhwc n1c10h9w8k12r4s1p1uh3uw2g2"})
    expect_served(text, warp_tile(32, 64, 16, 32, 16, 1, 1));
  for (const char* text : {"bwd_data n2c20h15w12k20r1s1u2", "bwd_data nhwc n2c20h15w13k20r1s1u2",
                           "bwd_data acc n2c9h13w15k20r3s1p1u2", "bwd_data nhwc n2c5h12w12k8r2s2d3u3"})
    expect_served(text);
  expect_served("bwd_data n2c20h12w12k20r1s1u2pt0pl1", warp_tile(32, 64, 16, 32, 16, 2));
}

// Sums in parts, and the one part to which a limit of the workspace leads.
TEST_F(GpuMmaGemm, PartsOfSums) {
  expect_served("bias relu acc n1c30h6w7k9r3s3p1", warp_tile(32, 64, 16, 32, 16, 2));
  expect_served("nhwc bwd_data acc n1c12h9w7k64r3s3p1u2", warp_tile(32, 64, 16, 32, 16, 3));
  expect_served("bwd_filter acc n2c3h12w15k6r3s3p1", warp_tile(32, 64, 16, 32, 16, 4));
  const auto workspace = [&](const char* text, std::int64_t limit) {
    return explain(Context(device), conv2d_problem(text), {.max_workspace_bytes = limit, .allow = {mma_gemm}})
        .front()
        .workspace_bytes;
  };
  EXPECT_EQ(workspace("bf16 bwd_filter n8c8h32w32k8r3s3p1", 0), 0);
}

// The gradient of filters counts rows and columns in one word where they are numbers of 14 bits, and else in two.
TEST_F(GpuMmaGemm, PixelsOfAnyPlace) {
  for (const char* geometry : {"n1c1h1w16384k2r1s3pl1", "n1c2h3w4k3r1s2pl16000uw4000"})
    expect_served(fmt::format("bwd_filter {}", geometry), warp_tile(32, 64, 16, 32, 16));
}

TEST_F(GpuMmaGemm, ArraysBeginAnywhere) {
  expect_same_wherever_arrays_begin(Context(device), conv2d_problem("nhwc n2c8h6w8k12r3s3p1"), mma_gemm);
  expect_same_wherever_arrays_begin(Context(device), conv2d_problem("bwd_filter f16 n2c8h6w8k12r3s3p1"), mma_gemm);
}

TEST_F(GpuMmaGemm, NumbersOfAnyRange) {
  const Context context(device);
  expect_of_scales(context, mma_gemm, 0x1p100f, 0x1p-110f);
  expect_of_scales(context, mma_gemm, 0x1p-70f, 0x1p-60f);   // results below the normal range
  expect_of_scales(context, mma_gemm, 0x1p-140f, 0x1p120f);  // numbers below it
  expect_of_scales(context, mma_gemm, 0x1p70f, 0x1p70f);     // results beyond it
  expect_of_scales(context, mma_gemm, 0.0f, 1.0f);
  expect_largest_beside_smallest(context, mma_gemm);
}

// Sums in parts, none of which need be an fp32 number where their sum is one, or is infinite.
TEST_F(GpuMmaGemm, PartsOfAnyRange) {
  const Context context(device);
  const Served served{.tuning = warp_tile(32, 64, 16, 32, 16, 3)};
  expect_of_scales(context, mma_gemm, 0x1p70f, 0x1p70f, served);
  expect_of_scales(context, mma_gemm, 0x1p-70f, 0x1p-60f, served);
  expect_largest_beside_smallest(context, mma_gemm, served);
  expect_infinities_as_defined(context, mma_gemm, {"n2c20h9w8k12r3s3p1"}, all_passes, served.tuning);
}

// Numbers of 16 bits are multiplied as they are. bf16 has sums beyond fp32's range, and such that leave it on their
// way.
TEST_F(GpuMmaGemm, NumbersOfSixteenBits) {
  const Context context(device);
  for (const int parts : {1, 3}) {
    const std::string tuning = warp_tile(32, 64, 16, 32, 16, parts);
    expect_infinities_as_defined(context, mma_gemm, {"f16 n2c20h9w8k12r3s3p1", "bf16 nhwc n4c12h9w12k40r3s3p1u2"},
                                 all_passes, tuning);
    expect_of_scales(context, mma_gemm, 0x1p70f, 0x1p70f, {.geometry = "bf16 n2c20h9w8k12r3s3p1", .tuning = tuning});
    expect_of_scales(context, mma_gemm, 0x1p66f, 0x1p61f, {.geometry = "bf16 n2c20h9w8k12r3s3p1", .tuning = tuning});
  }
  expect_infinities_as_defined(context, mma_gemm, {"bf16 n2c3h9w12k12r3s3p1u2"}, std::array{Pass::backward_data},
                               warp_tile(32, 64, 16, 32, 16, 1, 1));
}

// Of large arrays a sample alone is looked at for the scale: what was not looked at may be larger than all of it, or
// infinite. The products then are made again.
TEST_F(GpuMmaGemm, LargeNumbersBesideTheSample) {
  constexpr std::size_t not_looked_at = 40;  // in the second line of 32, of which the first is
  const std::string geometry = tests_cuda() ? "n1c16h1024w1032k16r1s1" : "n1c16h24w32k12r3s3p1";
  for (const Pass pass : all_passes) {
    const Conv2dProblem problem = with_pass(conv2d_problem(geometry), pass);
    const Conv2dElements all = elements_of(problem);
    const Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
    for (const float number : {1.5f, 1e6f, std::numeric_limits<float>::infinity()}) {
      Arrays changed = arrays;
      (pass == Pass::backward_data ? changed.y : changed.x)[not_looked_at] = number;
      expect_as_defined(Context(device), mma_gemm, problem, changed);
      if (pass == Pass::backward_filter) {
        changed.x = arrays.x, changed.y[not_looked_at] = number;
        expect_as_defined(Context(device), mma_gemm, problem, changed);
      }
    }
  }
}

TEST_F(GpuMmaGemm, InfinitiesAndNaN) {
  expect_infinities_as_defined(Context(device), mma_gemm, {"n2c20h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2"});
}

TEST_F(GpuMmaGemm, IsReplayed) {
  expect_replayed(Context(device), mma_gemm, {"n2c20h9w8k12r3s3p1", "bwd_filter n2c20h9w8k12r3s3p1"});
}

TEST_F(GpuMmaGemm, Refusals) {
  const auto refusal = [&](const std::string& text, const std::string& tuning = {}) {
    return error_of([&] { Plan(Context(device), conv2d_problem(text), {.solver = mma_gemm, .tuning = tuning}); });
  };
  EXPECT_HAS(refusal("f64 n1c2h4w4k2r3s3p1"), "f64 is convolved on the CPU");
  EXPECT_HAS(refusal("n1c1h32768w32768k1r1s1"), "more than the 1073741824 pixels that it counts");
  EXPECT_HAS(refusal("n1c8h8w8k8r3s3", warp_tile(32, 64, 16, 32, 16, 64)), "are not so many parts");
  EXPECT_HAS(refusal("n1c8h8w8k8r3s3", warp_tile(32, 64, 16, 64, 16)), "must be a multiple of warp_m, 64");
  EXPECT_HAS(refusal("n1c8h8w8k8r3s3", warp_tile(64, 64, 16, 64, 64)), "a work item holds 64 sums");
  EXPECT_HAS(refusal("n1c8h8w8k8r3s3", warp_tile(128, 32, 16, 16, 32)), "do not fetch so many products of a pixel");
}

}  // namespace
}  // namespace omniconv
