// conv2d/depthwise on GPU devices: every form of its kernels, whatever else serves the problems.
#include <cmath>

#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"

namespace omniconv {
namespace {

constexpr const char* depthwise = "conv2d/depthwise/gpu.1";

class GpuDepthwise : public Gpu {
 protected:
  // Exact on small integers and within its bound on random numbers, by this solver alone.
  void expect_served(const std::string& text, const std::string& tuning = {}, std::int64_t workspace_limit = -1) {
    const checking::VerifyOptions options{
        .solver = {.solver = depthwise, .max_workspace_bytes = workspace_limit, .tuning = tuning}};
    EXPECT_EQ(expect_exact_and_bounded(Context(device), conv2d_problem(text), options), 1) << text << ' ' << tuning;
  }
};

// A pass and layout of each in turn, with what is fused: a compilation each. Both extents of blocks that are not whole,
// vectors of 1, 2, 4 and 8, rows that begin with none, strides and dilations that share divisors, and those that do
// not. Planes are too large to be chosen for local memory.
TEST_F(GpuDepthwise, OneChannelAGroup) {
  int number = 0;
  for (const char* geometry :
       {"n2c8h29w12k8r3s3p1g8", "n2c6h25w13k6r3s3p1u2g6", "n3c7h17w17k7r3s3p1g7",
        "n2c4h20w21k4r3s2pt2pl1dh2dw3uh3uw2g4", "n1c4h11w56k4r5s5p2g4", "n2c4h20w20k4r3s3p2d2uh2uw3g4",
        "n2c4h27w11k4r4s4u4g4", "n1c3h1w258k3r3s3p1g3", "n2c12h30w24k12r2s3u2p1g12", "n1c1h17w19k1r5s3p2",
        "n2c4h17w16k4r1s1g4", "n2c8h18w18k8r3s3d4p4g8"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const int turn = number++;
      const char* const words =
          std::array{"fwd bias relu acc", "bwd_data acc",  "bwd_filter acc",
                     "fwd flip bias",     "bwd_data flip", "bwd_filter flip"}[static_cast<std::size_t>(turn * 5 % 6)];
      const char* const type = std::array{"f32", "f16", "bf16", "tf32", "f16"}[static_cast<std::size_t>(turn % 5)];
      expect_served(fmt::format("{} {} {} {}", words, type, layout, geometry));
    }
}

// Through local memory: planes that lie apart by vectors of every size, a last group that has fewer than the others and
// elements left over, channels that the last lanes have not, filters larger than a plane, strides and dilations.
TEST_F(GpuDepthwise, SmallPlanes) {
  int number = 0;
  for (const char* geometry :
       {"n2c8h9w12k8r3s3p1g8", "n2c6h15w13k6r3s3p1u2g6", "n3c7h7w7k7r3s3p1g7", "n2c4h9w11k4r4s4u4g4",
        "n1c3h1w2k3r3s3p1g3", "n2c4h13w16k4r1s1g4", "n2c8h14w14k8r3s3d4p4g8", "n3c20h14w14k20r5s5p2u2g20",
        "n5c33h3w3k33r3s3p1g33", "n2c36h7w5k36r3s2pt2pl1dh2dw3uh3uw2g36", "n1c70h2w2k70r7s7p3g70"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const int turn = number++;
      const char* const words = std::array{"fwd bias relu acc", "bwd_data acc", "fwd flip bias",
                                           "bwd_data flip"}[static_cast<std::size_t>(turn * 3 % 4)];
      const char* const type = std::array{"f32", "f16", "bf16"}[static_cast<std::size_t>(turn % 3)];
      const std::string text = fmt::format("{} {} {} {}", words, type, layout, geometry);
      expect_served(text);
      const Problem problem = conv2d_problem(text);
      EXPECT_EQ(explain(Context(device), problem, {.allow = {depthwise}}).front().tuning.find("planes=0"),
                std::string::npos)
          << text;
    }
}

// Planes of every number, blocks that are whole planes and those that are not, and more weights than a work item brings
// at once.
TEST_F(GpuDepthwise, PlanesAsAskedFor) {
  for (const auto& [text, tuning] :
       {std::pair{"n3c10h7w7k10r3s3p1g10",
                  "rows=7 columns=7 lanes=1 planes=32 resident=3 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"n3c10h7w7k10r3s3p1g10",
                  "rows=4 columns=3 lanes=1 planes=1 resident=3 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"acc bias n3c10h7w7k10r3s3p1g10",
                  "rows=1 columns=7 lanes=1 planes=2 resident=8 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"bwd_data f16 n3c10h14w14k10r3s3p1g10",
                  "rows=7 columns=7 lanes=1 planes=8 resident=2 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"bwd_data bf16 n1c5h14w14k5r3s3p1u2g5",
                  "rows=2 columns=8 lanes=1 planes=4 resident=4 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"n1c2h28w28k2r3s3p1g2",
                  "rows=7 columns=7 lanes=1 planes=2 resident=3 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"nhwc n3c40h7w7k40r3s3p1g40",
                  "rows=7 columns=1 lanes=8 planes=2 resident=3 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"nhwc bias relu acc n3c40h7w7k40r3s3p1g40",
                  "rows=2 columns=2 lanes=4 planes=2 resident=3 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"bwd_data nhwc f16 n2c24h14w14k24r3s3p1u2g24",
                  "rows=4 columns=4 lanes=4 planes=1 resident=3 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"nhwc n3c40h14w14k40r3s3p1u2g40",
                  "rows=2 columns=1 lanes=8 planes=1 resident=4 waves=0 async=1 alone=1 ahead=0"},
        std::pair{"nhwc flip n2c36h7w7k36r3s3p1g36",
                  "rows=7 columns=1 lanes=8 planes=1 resident=4 waves=0 async=0 alone=1 ahead=0"},
        std::pair{"bwd_data nhwc acc n2c24h13w15k24r3s3p1g24",
                  "rows=4 columns=4 lanes=4 planes=1 resident=4 waves=0 async=1 alone=0 ahead=0"},
        std::pair{"bwd_data nhwc f16 acc n2c24h7w7k24r3s3p1g24",
                  "rows=4 columns=4 lanes=4 planes=2 resident=4 waves=0 async=0 alone=1 ahead=0"},
        std::pair{"n3c10h8w14k10r3s3p1g10",
                  "rows=7 columns=2 lanes=1 planes=4 resident=4 waves=0 async=1 alone=0 ahead=0"},
        std::pair{"nhwc flip bf16 n2c24h27w26k24r3s3p1g24",
                  "rows=4 columns=2 lanes=8 planes=0 resident=4 waves=0 async=0 alone=1 ahead=0"},
        std::pair{"bwd_data nhwc flip n1c12h27w26k12r3s3p1u2g12",
                  "rows=4 columns=2 lanes=4 planes=0 resident=4 waves=0 async=0 alone=1 ahead=0"},
        std::pair{"nhwc n2c12h8w9k12r13s13p6g12",
                  "rows=1 columns=1 lanes=1 planes=1 resident=4 waves=0 async=0 alone=0 ahead=0"},
        std::pair{"nhwc flip n2c16h6w5k16r13s13p6g16",
                  "rows=1 columns=1 lanes=4 planes=1 resident=4 waves=0 async=0 alone=0 ahead=0"}})
    expect_served(text, tuning);
}

// Strips of more rows than there are and of fewer, rows and columns left over, strides, dilations and taps that one row
// of the input meets, vectors of 1, 2 and 4 elements, and turns of several windows.
TEST_F(GpuDepthwise, StripsAsAskedFor) {
  const auto strips = [](int rows, int columns, int lanes, int waves, int alone) {
    return fmt::format("rows={} columns={} lanes={} planes=0 resident=3 waves={} async=0 alone={} ahead=1", rows,
                       columns, lanes, waves, alone);
  };
  int number = 0;
  for (const char* const geometry :
       {"n2c12h29w31k12r3s3p1g12", "n2c24h17w20k24r3s3p1u2g24", "n3c10h33w18k10r3s3p2d2g10", "n1c7h16w19k7r3s3p1g7",
        "n2c8h20w21k8r3s2pt2pl1dh2dw3uh3uw2g8", "n2c16h27w22k16r2s3pt1uw2g16", "n1c20h30w17k20r1s3p1g20"})
    for (const char* const words :
         {"fwd bias relu acc", "bwd_data acc", "bwd_filter acc", "fwd flip", "bwd_data flip", "bwd_filter flip"}) {
      const std::string problem =
          fmt::format("{} {} nhwc {}", words, std::array{"bf16", "f16", "f32"}[number++ % 3], geometry);
      const Conv2dProblem parsed = conv2d_problem(problem);
      if (parsed.pass == Pass::backward_data && parsed.stride_h > 1) continue;
      const bool filter = parsed.pass == Pass::backward_filter, alone = !filter && parsed.c % 2 == 0 && number % 2 == 0;
      const int rows = std::array{28, 7, 14, 56, 5}[number % 5],
                columns = parsed.stride_w > 1 || number % 4 == 0 ? 2 : 1;
      expect_served(problem, strips(rows, columns, 4, filter ? 1 + number % 2 : 0, alone ? 1 : 0));
    }
}

// The 16-bit output of random numbers.
std::vector<std::uint16_t> bits_made(const Context& context, const Conv2dProblem& problem, const std::string& tuning) {
  Queue queue = context.make_queue();
  const Conv2dElements elements = elements_of(problem);
  std::uint64_t seed = 0;
  const auto filled = [&](std::int64_t count) {
    std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
    operations::fill_random(problem.type, 0, ++seed, std::as_writable_bytes(std::span(values)));
    const Buffer buffer = context.allocate(count * 2);
    queue.upload(buffer, 0, values.data(), count * 2).wait();
    return Operand{buffer};
  };
  Conv2dRun run{.x = filled(elements.x), .w = filled(elements.w), .y = filled(elements.y)};
  if (problem.bias) run.bias = filled(problem.k);
  Conv2dPlan(context, problem, {.solver = depthwise, .tuning = tuning}).run(queue, run).wait();
  const Buffer output = (problem.pass == Pass::forward ? run.y : run.x).buffer;
  std::vector<std::uint16_t> made(static_cast<std::size_t>(output.bytes() / 2));
  queue.download(made.data(), output, 0, output.bytes()).wait();
  return made;
}

// Sums are of the same terms in the same order as those of blocks.
TEST_F(GpuDepthwise, StripsMakeTheSameBitsAsBlocks) {
  const Context context(device);
  for (const char* const words : {"bf16 bias", "f16 bwd_data", "f16 flip relu", "bf16 bwd_data flip"}) {
    const Conv2dProblem problem = conv2d_problem(fmt::format("{} nhwc n3c12h29w30k12r3s3p1g12", words));
    const auto made = [&](const char* rest) {
      return bits_made(context, problem, fmt::format("rows=7 columns=2 lanes=2 planes=0 {}", rest));
    };
    EXPECT_EQ(made("resident=3 waves=0 async=0 alone=0 ahead=0"), made("resident=3 waves=0 async=0 alone=1 ahead=1"))
        << words;
  }
}

TEST_F(GpuDepthwise, FewChannelsAGroup) {
  for (const char* text :
       {"bias n2c4h14w16k8r3s3p1g4", "bwd_data acc nhwc n2c4h14w16k8r3s3p1g4", "bwd_filter n2c4h9w13k12r3s3p1u2g4",
        "nhwc f16 bias relu n2c12h10w9k12r3s3p1g3", "bwd_filter nhwc bf16 n2c24h10w9k16r3s3p1u2g2",
        "bwd_data n2c14h10w9k10r3s3p1u2g2", "bwd_filter flip n2c14h10w9k10r2s3g2", "f16 n1c64h6w8k64r3s3p1g2",
        "nhwc flip n1c33h7w6k66r1s3g33", "bwd_data nhwc n1c66h7w6k33r2s2u2g33"})
    expect_served(text);
}

// Of 25 taps weights leave registers, of 100 the rows become a loop, and the gradient's taps several work items'.
TEST_F(GpuDepthwise, LargeFilters) {
  for (const char* text :
       {"n1c4h24w24k4r7s7p3g4", "nhwc n1c8h14w20k8r7s7p3g8", "bwd_filter nhwc n1c4h12w20k4r7s7p3g4",
        "nhwc n1c8h12w20k8r7s7p3g8", "n1c2h20w18k2r31s31p15g2", "bwd_data nhwc f16 n1c4h20w18k4r31s31p15g4",
        "bwd_filter n1c2h20w18k2r13s15p7g2", "nhwc n1c2h20w18k2r51s51p25g2", "n1c2h40w30k2r12s12d3p8uh2g2",
        "bwd_data n1c2h20w18k2r11s12p5u2g2"})
    expect_served(text);
}

// Blocks of a gradient beyond the last row and column, in several waves.
TEST_F(GpuDepthwise, GradientsOfFiltersAsAskedFor) {
  for (const auto& [text, tuning] :
       {std::pair{"bwd_filter nhwc n9c12h29w30k12r3s3p1g12",
                  "rows=4 columns=2 lanes=4 planes=0 resident=3 waves=1 async=0 alone=0 ahead=0"},
        std::pair{"bwd_filter nhwc acc f16 n9c24h29w31k24r3s3p1u2g24",
                  "rows=8 columns=1 lanes=8 planes=0 resident=3 waves=4 async=0 alone=0 ahead=0"},
        std::pair{"bwd_filter acc n9c6h29w31k6r3s3p1g6",
                  "rows=4 columns=2 lanes=1 planes=0 resident=3 waves=2 async=0 alone=0 ahead=0"},
        std::pair{"bwd_filter nhwc n4c4h20w20k8r3s3p1g4",
                  "rows=2 columns=2 lanes=2 planes=0 resident=4 waves=2 async=0 alone=0 ahead=0"}})
    expect_served(text, tuning);
}

// Partial sums, and the one part to which a limit of the workspace leads.
TEST_F(GpuDepthwise, PartsOfGradients) {
  const Context context(device);
  for (const char* text : {"bwd_filter acc n40c2h64w64k2r3s3p1g2", "bwd_filter nhwc n40c2h64w64k2r3s3p1g2"}) {
    const Conv2dProblem problem = conv2d_problem(text);
    const std::int64_t of_part = elements_of(problem).w * 4;
    const auto bytes = [&](std::int64_t limit) {
      return explain(context, problem, {.max_workspace_bytes = limit, .allow = {depthwise}}).front().workspace_bytes;
    };
    EXPECT_GE(bytes(-1), 2 * of_part) << text;
    EXPECT_EQ(bytes(3 * of_part - 1), 2 * of_part) << text;
    EXPECT_EQ(bytes(of_part), 0) << text;
    expect_served(text);
    expect_served(text, {}, 0);
  }
}

TEST_F(GpuDepthwise, PassesAreAdjoint) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 4;) {
    Conv2dProblem problem = random_conv2d(random);
    if (problem.groups == 1) continue;
    problem.layout = i % 2 == 0 ? Layout::nchw : Layout::nhwc;
    expect_adjoint(Context(device), problem, depthwise, static_cast<std::uint64_t>(i++));
  }
}

TEST_F(GpuDepthwise, ArraysBeginAnywhere) {
  for (const char* text : {"n2c4h7w8k4r3s3p1g4", "nhwc n2c4h7w8k4r3s3p1g4", "n1c4h17w16k4r3s3p1g4",
                           "nhwc n1c4h17w16k4r3s3p1g4", "flip n2c4h7w8k8r3s3p1uh2g4", "nhwc n2c8h7w9k4r3s2p1uw2dh2g2"})
    for (const Pass pass : all_passes)
      expect_same_wherever_arrays_begin(Context(device), with_pass(conv2d_problem(text), pass), depthwise);
}

// The last column of x meets the second tap alone; a block's fourth column of y, which is not there, would meet it by
// the first. Likewise its rows.
TEST_F(GpuDepthwise, InfinityPastTheLastPixelStaysOut) {
  const Context context(device);
  Queue queue = context.make_queue();
  for (const auto& [text, ahead] :
       {std::pair{"bwd_filter n1c1h1w4k1r1s2", 0}, std::pair{"bwd_filter n1c1h4w1k1r2s1", 0},
        std::pair{"bwd_filter nhwc n1c1h1w4k1r1s2", 0}, std::pair{"bwd_filter nhwc n1c1h1w4k1r1s2", 1},
        std::pair{"bwd_filter nhwc n1c1h4w1k1r2s1", 1}}) {
    const std::string tuning =
        fmt::format("rows=4 columns=4 lanes=1 planes=0 resident=4 waves=1 async=0 alone=0 ahead={}", ahead);
    const Conv2dPlan plan(context, conv2d_problem(text), {.solver = depthwise, .tuning = tuning});
    const std::vector<float> x{1, 2, 3, INFINITY}, y{1, 1, 1};
    const Buffer of_x = context.allocate(16), of_w = context.allocate(8), of_y = context.allocate(12);
    queue.upload(of_x, 0, x.data(), 16).wait(), queue.upload(of_y, 0, y.data(), 12).wait();
    plan.run(queue, {.x = {of_x}, .w = {of_w}, .y = {of_y}}).wait();
    std::vector<float> w(2);
    queue.download(w.data(), of_w, 0, 8).wait();
    EXPECT_EQ(w, (std::vector<float>{6, INFINITY})) << text << ' ' << ahead;
  }
}

TEST_F(GpuDepthwise, Refusals) {
  const auto refusal = [&](const std::string& text, const std::string& tuning = {}) {
    return error_of([&] { Plan(Context(device), conv2d_problem(text), {.solver = depthwise, .tuning = tuning}); });
  };
  EXPECT_HAS(refusal("f64 n1c2h4w4k2r3s3p1g2"), "f64 is convolved on the CPU");
  EXPECT_HAS(refusal("n1c2h4w4k3r3s3p1"), "2 and 3 channels are one group, and this variant is for several");
  EXPECT_HAS(refusal("n1c66h4w4k2r3s3p1g2"), "the channels of a group are 33, and this variant takes at most 32");
  EXPECT_HAS(refusal("n1c2h4w4k66r3s3p1g2"), "the channels of a group are 33, and this variant takes at most 32");
  EXPECT_HAS(refusal("n1c2h4w70k2r1s65g2"), "the taps along an axis are 65, and this variant takes at most 64");
  EXPECT_HAS(refusal("n1c2h4w4k2r3s3p90d90g2"),
             "a dilated filter reaches over are 181, and this variant takes at most");
  EXPECT_HAS(refusal("n1c2h40w40k2r1s1d129g2"), "the dilation is 129, and this variant takes at most 128");
  EXPECT_HAS(refusal("n1c2h40w40k2r1s1u9g2"), "the stride is 9, and this variant takes at most 8");
  EXPECT_HAS(refusal("n1c2h4w4k2r1s1p128g2"), "the padding is 128, and this variant takes at most 127");
  EXPECT_HAS(refusal("n1c2h32768w32768k2r1s1g2"), "2 planes of 1073741824 pixels are more than 32-bit numbers count");
  const auto tuned = [](int rows, int columns, int lanes, int planes = 0,
                        const char* rest = "waves=0 async=0 alone=0 ahead=0") {
    return fmt::format("rows={} columns={} lanes={} planes={} resident=4 {}", rows, columns, lanes, planes, rest);
  };
  EXPECT_HAS(refusal("n1c4h8w8k4r1s1g2", tuned(8, 8, 1)), "rows=8: a work item has 128 sums, and at most 64");
  EXPECT_HAS(refusal("n1c2h8w80k2r1s64g2", tuned(4, 8, 1)), "rows=4: a text has 2048 multiply-adds, and at most 1024");
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3g2", tuned(2, 2, 2)), "lanes=2: must be 1 in nchw");
  EXPECT_HAS(refusal("bwd_data n1c2h8w8k2r3s3uh2g2", tuned(3, 2, 1)), "rows=3: must be a multiple of the stride, 2");
  EXPECT_HAS(refusal("bwd_data n1c2h8w8k2r3s3uw2g2", tuned(2, 3, 1)), "columns=3: must be a multiple of the stride, 2");
  EXPECT_HAS(refusal("nhwc n1c64h40w40k64r31s31p15g64", tuned(1, 1, 8)), "of local memory, and at most 32768");
  EXPECT_HAS(refusal("bwd_filter n1c2h8w8k2r3s3g2", tuned(2, 2, 1, 4, "waves=1 async=0 alone=0 ahead=0")),
             "planes=4: must be 0 for the filter's gradient");
  EXPECT_HAS(refusal("n1c4h8w8k4r3s3g2", tuned(2, 2, 1, 4)), "planes=4: channels of a group are 2, and at most 1");
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3p1g2", tuned(1, 1, 1, 8)), "the work items of a group are 512, and at most 256");
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3p1g2", tuned(2, 2, 1, 0, "waves=1 async=0 alone=0 ahead=0")), "waves=1: must be 0");
  EXPECT_HAS(refusal("bwd_filter n1c2h8w8k2r3s3p1g2", tuned(2, 2, 1)), "waves=0: must be 1 or more for");
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3p1g2", tuned(2, 2, 1, 0, "waves=0 async=1 alone=0 ahead=0")),
             "async=1: must be 0 where");
  EXPECT_HAS(refusal("bwd_filter n1c2h8w8k2r3s3p1g2", tuned(2, 2, 1, 0, "waves=1 async=1 alone=0 ahead=0")),
             "async=1: must be 0 where");
  EXPECT_HAS(refusal("n1c2h7w7k2r3s3p1g2", tuned(2, 2, 1, 1, "waves=0 async=1 alone=0 ahead=0")),
             "async=1: vectors are of 4 bytes, and must be of 16");
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3p1g2", tuned(2, 2, 1, 0, "waves=0 async=0 alone=1 ahead=0")),
             "alone=1: must be 0 but for");
  EXPECT_HAS(refusal("nhwc n1c4h24w24k4r5s5p2g4", tuned(1, 1, 1, 0, "waves=0 async=0 alone=1 ahead=0")),
             "alone=1: must be 0");
  EXPECT_HAS(refusal("n1c2h96w192k2r3s3p1u8g2", tuned(4, 4, 1, 1)), "planes=1: the bytes of local memory are 73728");
  EXPECT_HAS(refusal("n1c64h10w10k64r3s3p1u2g64", tuned(5, 5, 1, 64)),
             "planes=64: the vectors that a work item reads are 25, and at most 16");
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3g2", tuned(9, 1, 1)), "must be one of 1, 2, 3, 4, 5, 6, 7, 8, 14, 28, 56");
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3g2", tuned(14, 1, 1)), "rows=14: must be at most 8 where ahead is 0");
  const char *const strips = "waves=0 async=0 alone=0 ahead=1", *const of_filter = "waves=1 async=0 alone=0 ahead=1";
  EXPECT_HAS(refusal("n1c2h8w8k2r3s3g2", tuned(14, 1, 1, 0, strips)), "ahead=1: must be 0 but for nhwc");
  EXPECT_HAS(refusal("nhwc n1c4h8w8k8r3s3g2", tuned(14, 1, 1, 0, strips)), "ahead=1: must be 0 but for nhwc");
  EXPECT_HAS(refusal("nhwc n1c4h7w7k4r3s3p1g4", tuned(7, 1, 1, 1, strips)), "ahead=1: must be 0 where planes is not");
  EXPECT_HAS(refusal("bwd_data nhwc n1c2h8w8k2r3s3u2g2", tuned(14, 2, 1, 0, strips)), "ahead=1: must be 0 to the data");
  EXPECT_HAS(refusal("nhwc n1c4h24w24k4r5s5p2g4", tuned(14, 1, 1, 0, strips)),
             "ahead=1: must be 0 where taps are many");
  EXPECT_HAS(refusal("bwd_filter nhwc n1c4h24w24k4r9s9p2g4", tuned(14, 1, 1, 0, of_filter)),
             "ahead=1: must be 0 where taps are many");
  EXPECT_HAS(refusal("nhwc n1c4h24w24k4r3s3d4p4g4", tuned(14, 2, 1, 0, strips)), "a work item has 72 sums");
}

}  // namespace
}  // namespace omniconv
