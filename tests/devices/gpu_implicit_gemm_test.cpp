// conv2d/implicit_gemm on GPU devices: every form of its kernels, whatever else serves the problems.
#include <algorithm>
#include <cmath>

#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* implicit_gemm = "conv2d/implicit_gemm/gpu.1";

class GpuImplicitGemm : public Gpu {
 protected:
  // Its loops have barriers, with which not every PoCL is trusted.
  bool is_served() const {
    for (const Candidate& candidate : explain(Context(device), conv2d_problem("n1c8h4w4k8r3s3"), {}))
      if (candidate.solver == implicit_gemm) return candidate.applicable;
    return false;
  }
  void SetUp() override {
    Gpu::SetUp();
    if (!IsSkipped() && !is_served()) GTEST_SKIP() << "the device is not trusted with barriers in loops";
  }
  // Exact on small integers and within its bound on random numbers, by this solver alone.
  void expect_served(const std::string& text, const std::string& tuning = {}, std::int64_t workspace_limit = -1) {
    const checking::VerifyOptions options{
        .solver = {.solver = implicit_gemm, .max_workspace_bytes = workspace_limit, .tuning = tuning}};
    EXPECT_EQ(expect_exact_and_bounded(Context(device), conv2d_problem(text), options), 1) << text << ' ' << tuning;
  }
  // A run of f32 arrays; the output is what comes out.
  std::vector<float> run_of(const std::string& text, std::vector<float> x, std::vector<float> w, std::vector<float> y) {
    const Context context(device);
    const Conv2dProblem problem = conv2d_problem(text);
    Queue queue = context.make_queue();
    const auto put = [&](const std::vector<float>& values) {
      const Buffer buffer = context.allocate(static_cast<std::int64_t>(values.size() * 4));
      queue.upload(buffer, 0, values.data(), buffer.bytes()).wait();
      return buffer;
    };
    Conv2dRun run{.x = {put(x)}, .w = {put(w)}, .y = {put(y)}};
    const Conv2dPlan plan(context, problem, {.solver = implicit_gemm});
    if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
    plan.run(queue, run).wait();
    const bool data = problem.pass == Pass::backward_data;
    std::vector<float>& output = data ? x : problem.pass == Pass::forward ? y : w;
    queue
        .download(output.data(),
                  (data                            ? run.x
                   : problem.pass == Pass::forward ? run.y
                                                   : run.w)
                      .buffer,
                  0, static_cast<std::int64_t>(output.size() * 4))
        .wait();
    return std::move(output);
  }
};

std::string tuned(int tile_m, int tile_n, int tile_k, int quads_m, int quads_n, int parts = 1) {
  return fmt::format("tile_m={} tile_n={} tile_k={} quads_m={} quads_n={} resident=1 parts={}", tile_m, tile_n, tile_k,
                     quads_m, quads_n, parts);
}

// A pass and layout of each in turn, with what is fused: a compilation each. Channels that are stages, vectors, and
// neither; stages of one tap and of several; planes of y that are whole vectors and not; strides and dilations that
// share divisors, and those that do not, so that classes of pixels meet many taps, few, or none.
TEST_F(GpuImplicitGemm, GeometriesInEveryPassAndLayout) {
  int number = 0;
  for (const char* geometry :
       {"n2c16h9w12k20r3s3p1", "n2c12h15w13k10r3s3p1u2", "n3c3h17w13k6r5s5pt2pl1uw2", "n2c24h8w8k16r3s3d2u2",
        "n1c9h12w11k5r4s2p2dh3uh2uw3", "n2c16h7w7k8r1s1u2", "n2c32h10w10k32r3s3p1g2", "n1c6h9w11k10r2s3u3g2",
        "n4c5h1w6k3r1s4p1u4", "n1c17h3w20k33r3s3p2"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const int turn = number++;
      const char* const words =
          std::array{"fwd bias relu acc", "bwd_data acc",  "bwd_filter acc",
                     "fwd flip bias",     "bwd_data flip", "bwd_filter flip"}[static_cast<std::size_t>(turn * 5 % 6)];
      const char* const type = std::array{"f32", "f16", "bf16", "tf32", "f32"}[static_cast<std::size_t>(turn % 5)];
      expect_served(fmt::format("{} {} {} {}", words, type, layout, geometry));
    }
}

// Work items that fetch several pixels of a stage and several stages of a pixel, tiles narrower than a group, and 16 x
// 8 sums.
TEST_F(GpuImplicitGemm, TilesOfEveryShape) {
  int number = 0;
  for (const std::string& tuning :
       {tuned(64, 128, 8, 4, 2), tuned(128, 32, 8, 1, 1), tuned(16, 64, 16, 1, 1), tuned(32, 32, 32, 1, 1),
        tuned(128, 64, 8, 2, 1), tuned(64, 64, 16, 4, 1), tuned(256, 32, 8, 1, 1), tuned(64, 256, 8, 1, 1)}) {
    const char* const pass = std::array{"fwd", "bwd_data", "bwd_filter"}[static_cast<std::size_t>(number % 3)];
    const char* const other = std::array{"fwd", "bwd_data", "bwd_filter"}[static_cast<std::size_t>((number + 2) % 3)];
    expect_served(fmt::format("{} n2c20h9w14k70r3s3p1", pass), tuning);
    expect_served(fmt::format("{} nhwc n2c20h9w14k68r3s3p1u2", other), tuning);
    for (const char* any : {"fwd", "bwd_filter"})  // channels that are fetched one by one
      expect_served(fmt::format("{} nhwc n2c19h5w6k67r3s3p1", any), tuning);
    ++number;
  }
}

// One class of pixels has taps, and its positions make the others, too: by vectors of two positions, of one, of four,
// and one by one; along either axis alone; the first class and another; in stages of several taps. Or the class of the
// only row has none.
TEST_F(GpuImplicitGemm, PixelsWithoutATap) {
  for (const char* text :
       {"acc n2c6h8w8k12r1s1u2", "f16 n1c5h7w12k9r1s1p1u2", "n2c6h9w7k12r1s1u2", "n1c6h8w8k12r1s3pl1pr1uh2",
        "n1c6h7w8k12r3s1pt1uw4", "bf16 n1c5h9w9k7r1s1u3", "acc nhwc n2c8h9w7k12r1s1pl1u2", "nhwc n1c5h7w8k9r1s1uh3uw2",
        "n1c5h8w8k3r2s2d2u2", "n1c6h8w8k12r1s3u2", "n2c8h8w8k12r1s1u2g2", "n1c4h3w8k3r1s1u4", "n1c4h10w20k3r1s1u9",
        "n1c4h1w8k3r2s1pt1pb1dh2uh2", "nhwc n1c4h1w8k3r1s1pt9pb9uh9"})
    expect_served(fmt::format("bwd_data {}", text));
  expect_served("bwd_data acc n1c5h8w8k128r1s1u2", tuned(32, 32, 16, 1, 1, 2));
}

// Sums in parts, and the one part to which a limit of the workspace leads.
TEST_F(GpuImplicitGemm, PartsOfSums) {
  for (const char* text : {"bias relu acc n1c30h6w7k9r3s3p1", "nhwc bwd_data acc n1c12h9w7k64r3s3p1u2",
                           "bwd_filter acc n2c3h12w15k6r3s3p1", "nhwc f16 bias n1c40h5w5k12r3s3"})
    expect_served(text, tuned(32, 32, 16, 1, 1, 2));
  expect_served("bwd_filter n2c8h12w15k6r3s3p1", {}, 0);
  const auto offered = [&](const char* text, std::int64_t limit, const std::string& tuning = {}) {
    SolverOptions options{.max_workspace_bytes = limit, .allow = {implicit_gemm}, .tuning = tuning};
    if (!tuning.empty()) options.solver = implicit_gemm;
    for (const Candidate& candidate : explain(Context(device), conv2d_problem(text), options))
      if (candidate.solver == implicit_gemm) return candidate;
    return Candidate();
  };
  const Candidate filters = offered("bwd_filter n8c8h32w32k8r3s3p1", 0);
  EXPECT_TRUE(filters.tuning.ends_with(" parts=1")) << filters.tuning;
  EXPECT_EQ(filters.workspace_bytes, 0);
  // Turned filters are needed: nine taps of eight channels, as many columns as the tile has rows, 32 at the least.
  constexpr const char* forward = "n8c8h32w32k8r3s3p1";
  for (const int tile_m : {16, 32, 64}) {
    const std::string tuning = tuned(tile_m, 64, 8, 1, 1);
    const std::int64_t needed = std::int64_t{9} * 8 * std::max(tile_m, 32) * 4;
    EXPECT_EQ(offered(forward, needed, tuning).workspace_bytes, needed) << tuning;
    EXPECT_FALSE(offered(forward, needed - 1, tuning).applicable) << tuning;
  }
  // What is chosen without a limit still is where that is the limit.
  const Candidate free = offered(forward, -1), limited = offered(forward, free.workspace_bytes);
  EXPECT_GE(free.workspace_bytes, 9 * 8 * 32 * 4);
  EXPECT_EQ(limited.tuning, free.tuning);
}

// The gradient of filters counts rows and columns in one word where they are numbers of 14 bits, and else in two.
TEST_F(GpuImplicitGemm, PixelsOfAnyPlace) {
  for (const char* geometry :
       {"n1c2h2w16383k3r1s1", "n1c2h2w16384k3r1s3pl1", "n2c3h16384w1k2r3s1pt1uh3", "n1c2h3w4k3r1s2pl16000uw4000",
        "nhwc n1c4h2w16400k3r1s3pl1", "n1c2h3w5k3r2s1pt7dh16000pb16000"})
    expect_served(fmt::format("bwd_filter {}", geometry), tuned(32, 32, 16, 1, 1));
}

TEST_F(GpuImplicitGemm, PassesAreAdjoint) {
  std::mt19937_64 random(13);
  for (int i = 0; i < 4; ++i)
    expect_adjoint(Context(device), random_conv2d(random), implicit_gemm, static_cast<std::uint64_t>(i));
}

TEST_F(GpuImplicitGemm, ArraysBeginAnywhere) {
  for (const char* text : {"n2c8h6w8k12r3s3p1", "nhwc n2c8h6w8k12r3s3p1", "n2c8h6w8k12r1s1u2"})
    for (const Pass pass : all_passes)
      expect_same_wherever_arrays_begin(Context(device), with_pass(conv2d_problem(text), pass), implicit_gemm);
}

// Padding and the ends of stages are zeros, whatever lies beside them in memory.
TEST_F(GpuImplicitGemm, InfinitiesStayWhereTheyAre) {
  constexpr float inf = INFINITY;
  // Channels and taps end within a stage; an infinite neighbour in memory is met by no product of theirs.
  EXPECT_EQ(run_of("n1c1h1w4k1r1s2pl1", {1, 2, 3, inf}, {1, 1}, {0, 0, 0, 0}), (std::vector<float>{1, 3, 5, inf}));
  EXPECT_EQ(run_of("nhwc n2c3h1w1k1r1s1", {1, 2, 3, inf, 4, 5}, {1, 1, 1}, {0, 0}), (std::vector<float>{6, inf}));
  EXPECT_EQ(run_of("bwd_data n2c1h1w2k1r1s2pl1", {0, 0, 0, 0}, {2, 3}, {1, 2, inf, 4}),
            (std::vector<float>{7, 6, inf, 12}));
  // Pixels of y end within a stage; past their end in memory there is an image that is no part's.
  EXPECT_EQ(run_of("bwd_filter n1c2h1w3k2r1s1", {1, 2, 3, inf, 0, 0}, {0, 0, 0, 0}, {1, 1, 1, 1, 2, 3}),
            (std::vector<float>{6, inf, 14, inf}));
}

// Zeros around y meet infinite filters, and sums leave fp32's range on their way: of tiles, and of parts of sums.
TEST_F(GpuImplicitGemm, SumsThatAreNoNumbers) {
  const Context context(device);
  for (const auto& [geometry, tuning] : {std::pair{"n1c12h9w8k12r3s3p1", std::string()},
                                         {"f16 nhwc n1c12h9w12k12r3s3p1u2", std::string()},
                                         {"n1c12h8w8k12r1s1p1u2", std::string()},
                                         {"nhwc n1c12h9w7k12r1s1u2", std::string()},
                                         {"n2c16h9w8k16r3s3p1", tuned(32, 32, 16, 1, 1, 2)},
                                         {"bf16 nhwc n2c16h9w8k16r3s3p1", tuned(32, 32, 16, 1, 1, 2)}})
    expect_infinities_as_defined(context, implicit_gemm, {geometry}, all_passes, tuning);
  for (const char* geometry : {"n1c12h9w8k12r3s3p1", "bf16 n1c12h9w8k12r3s3p1"})
    expect_of_scales(context, implicit_gemm, 0x1p66f, 0x1p61f, {.geometry = geometry});
  expect_of_scales(context, implicit_gemm, 0x1p70f, 0x1p70f,
                   {.geometry = "n2c16h9w8k16r3s3p1", .tuning = tuned(32, 32, 16, 1, 1, 2)});
}

TEST_F(GpuImplicitGemm, Refusals) {
  const auto refusal = [&](const std::string& text, const std::string& tuning = {}) {
    return error_of([&] { Plan(Context(device), conv2d_problem(text), {.solver = implicit_gemm, .tuning = tuning}); });
  };
  EXPECT_HAS(refusal("f64 n1c2h4w4k2r3s3p1"), "f64 is convolved on the CPU");
  EXPECT_HAS(refusal("n1c1h32768w32768k1r1s1"), "more than the 1073741824 pixels that it counts");
  EXPECT_HAS(refusal("bwd_filter n1c1h1w4k1r1s2p20000d40000"), "a filter reaches over 40001 rows or columns");
  EXPECT_HAS(refusal("n1c8h8w8k8r3s3", tuned(32, 32, 16, 1, 1, 4)), "tuning parts=4: each must have at least 64");
  EXPECT_HAS(refusal("n1c8h8w8k8r3s3", tuned(32, 32, 16, 4, 1)), "must be a multiple of 16 * quads_m, 64");
}

}  // namespace
}  // namespace omniconv
