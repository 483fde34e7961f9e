// conv2d/winograd on GPU devices: every form of its kernels, whatever else serves the problems.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"
#include "operations/conv2d/winograd/winograd.h"

namespace omniconv {
namespace {

constexpr const char* winograd = "conv2d/winograd/gpu.1";

class GpuWinograd : public Gpu {
 protected:
  // Within its bound on random numbers, and exact on small integers where it promises so, by this solver alone.
  void expect_served(const std::string& text, const std::string& tuning = {}, std::int64_t workspace_limit = -1) {
    const checking::VerifyOptions options{
        .solver = {.solver = winograd, .max_workspace_bytes = workspace_limit, .tuning = tuning}};
    EXPECT_EQ(expect_exact_and_bounded(Context(device), conv2d_problem(text), options), 1) << text << ' ' << tuning;
  }
  Candidate explained(const std::string& text, SolverOptions options = {}) {
    options.solver = winograd;
    return explain(Context(device), parse_problem(text), options).front();
  }
  std::string refusal(const std::string& text, const SolverOptions& options = {}) {
    const Candidate candidate = explained(text, options);
    EXPECT_FALSE(candidate.applicable) << text;
    return candidate.reason;
  }

  // What a run makes of random arrays, whose filters it is given prepared where the options say so.
  std::vector<float> made_by(const std::string& text, SolverOptions options) {
    options.solver = winograd;
    const Context context(device);
    const Plan plan(context, parse_problem(text), options);
    Queue queue = context.make_queue();
    std::vector<NamedOperand> arrays;
    std::uint64_t seed = 1;
    for (const ArraySpec& array : plan.arrays()) {
      std::vector<std::byte> values(static_cast<std::size_t>(array.bytes()));
      operations::fill_random(array.type, 0, seed++, values);
      const Buffer buffer = context.allocate(array.bytes());
      queue.upload(buffer, 0, values.data(), array.bytes()).wait();
      arrays.push_back({array.name, {buffer}});
      const auto format = plan.format(array.name);
      if (format == nullptr) continue;
      const Buffer prepared = context.allocate(format->bytes);
      plan.prepare(queue, array.name, {buffer}, prepared).wait();
      arrays.back().operand = {prepared, 0, format};
    }
    plan.run(queue, arrays, context.allocate(plan.workspace_bytes())).wait();
    std::vector<float> output;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (plan.arrays()[i].role == ArrayRole::in) continue;
      output.resize(static_cast<std::size_t>(plan.arrays()[i].elements()));
      queue.download(output.data(), arrays[i].operand.buffer, 0, plan.arrays()[i].bytes()).wait();
    }
    return output;
  }
};

// A pass and layout of each in turn, with what is fused: a compilation each. Whole tiles and ragged ones, rows of y
// that are vectors and others, one tile and many, groups, paddings that are larger than the filter, and unlike ones.
TEST_F(GpuWinograd, GeometriesInEveryPassLayoutAndForm) {
  int number = 0;
  for (const char* geometry :
       {"n1c1h1w1k1r3s3p1", "n2c3h5w7k4r3s3p1", "n3c5h17w13k7r3s3pt2pb1pl0pr1", "n2c17h8w8k31r3s3p1",
        "n2c6h19w23k9r3s3p1g3", "n1c4h12w30k33r3s3p4", "n5c33h7w7k20r3s3p1", "n2c4h9w9k4r3s3p1g4", "n1c3h12w26k5r5s5p2",
        "n2c18h9w10k14r5s5pt4pb0pl1pr3g2", "n1c2h5w5k2r5s5", "n1c3h4w6k2r5s5p7"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const char* const words = std::array{"bias relu acc", "bwd_data", "flip", "bwd_data flip acc",
                                           "bias"}[static_cast<std::size_t>(number % 5)];
      const std::string text = fmt::format("{} {} {}", words, layout, geometry);
      const bool large = std::string_view(geometry).find("r3s3") != std::string_view::npos && number % 3 != 0;
      expect_served(text, large ? "tile=4 tiles=0" : "tile=2 tiles=0");
      ++number;
    }
}

// To the filter: channels and filters of every group, rows and images that tiles do not cover, taps turned, added to.
TEST_F(GpuWinograd, GradientsInEveryLayoutAndForm) {
  int number = 0;
  for (const char* geometry :
       {"n1c1h1w1k1r3s3p1", "n2c3h5w7k4r3s3p1", "n3c5h17w13k7r3s3pt2pb1pl0pr1", "n2c17h8w8k31r3s3p1",
        "n2c6h19w23k9r3s3p1g3", "n1c4h12w30k33r3s3p4", "n5c33h7w7k20r3s3p1", "n2c4h9w9k4r3s3p1g4", "n2c8h5w3k5r3s3"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const char* const words = std::array{"", "flip", "acc", "flip acc"}[static_cast<std::size_t>(number % 4)];
      expect_served(fmt::format("bwd_filter {} {} {}", words, layout, geometry),
                    number % 3 != 0 ? "tile=4 tiles=0" : "tile=2 tiles=0");
      number += std::string_view(layout) == "nchw" ? 1 : 2;  // so that layouts meet all words
    }
}

TEST_F(GpuWinograd, EveryPassAndLayoutOfALargerTile) {
  for (const char* words : {"", "nhwc", "bwd_data", "bwd_data nhwc", "bwd_filter", "bwd_filter nhwc"})
    expect_served(fmt::format("{} n2c20h12w16k24r3s3p1", words), "tile=4 tiles=0");
  expect_served("tf32 bias relu n2c9h11w20k18r3s3p1");
}

// Where arrays do not begin at vectors rows are stored number by number.
TEST_F(GpuWinograd, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* text :
       {"n1c3h8w8k5r3s3p1", "nhwc bwd_data n1c3h8w8k5r3s3p1", "n1c3h6w6k2r5s5p2", "bwd_filter n1c3h8w8k5r3s3p1"})
    expect_same_wherever_arrays_begin(context, conv2d_problem(text), winograd);
}

// Neither blocks nor a limit of the workspace change a bit, nor do filters that come transformed.
TEST_F(GpuWinograd, BitsAreOfTheProblemAlone) {
  for (const char* text : {"n3c20h21w30k40r3s3p1", "nhwc n3c12h21w30k20r3s3p1g2", "bwd_data n3c12h21w30k20r3s3p1g2",
                           "bwd_data nhwc n2c20h21w30k12r3s3p1", "n1c8h20w20k20r5s5p2"}) {
    const std::vector<float> expected = made_by(text, {});
    EXPECT_EQ(made_by(text, {.prepared = {"w"}}), expected) << text;
    const std::int64_t whole = explained(text).workspace_bytes;
    const std::int64_t least = explained(text, {.max_workspace_bytes = 0}).workspace_bytes;
    EXPECT_FALSE(explained(text, {.max_workspace_bytes = 0}).applicable);
    for (const std::int64_t limit : {whole - 1, whole / 2}) {
      const Candidate limited = explained(text, {.max_workspace_bytes = limit});
      ASSERT_TRUE(limited.applicable) << text << ": " << limited.reason << ' ' << least;
      EXPECT_LE(limited.workspace_bytes, limit) << text;
      EXPECT_EQ(made_by(text, {.max_workspace_bytes = limit}), expected) << text;
    }
  }
}

// To the filter sums go through one block after the other, so that the workspace is that of one.
TEST_F(GpuWinograd, GradientsTakeTheWorkspaceOfTheirBlocks) {
  const std::string tuning = "tile=4 tiles=0";
  for (const char* text : {"bwd_filter n3c20h21w30k40r3s3p1", "bwd_filter nhwc n3c12h21w30k20r3s3p1g2"}) {
    const std::int64_t whole = explained(text, {.tuning = tuning}).workspace_bytes;
    EXPECT_EQ(made_by(text, {.max_workspace_bytes = whole, .tuning = tuning}), made_by(text, {.tuning = tuning}))
        << text;
    const Candidate limited = explained(text, {.max_workspace_bytes = whole - 1, .tuning = tuning});
    EXPECT_FALSE(limited.applicable) << text;
    EXPECT_HAS(limited.reason, std::to_string(whole));
    EXPECT_LT(explained(text, {.tuning = "tile=4 tiles=64"}).workspace_bytes, whole) << text;
  }
}

TEST_F(GpuWinograd, BlocksAreServed) {
  expect_served("bias n2c5h40w44k6r3s3p1", "tile=4 tiles=64");
  expect_served("nhwc bwd_data n2c5h40w44k6r3s3p1", "tile=2 tiles=256");
  // Two blocks, and more of which the last is smaller.
  expect_served("bwd_filter acc n2c5h30w32k6r3s3p1", "tile=4 tiles=64");
  expect_served("bwd_filter nhwc n2c5h40w44k6r3s3p1", "tile=4 tiles=64");
  expect_served("bwd_filter n1c9h31w33k7r3s3p1", "tile=2 tiles=64");
}

TEST_F(GpuWinograd, PreparedFiltersAreShared) {
  expect_filters_shared(Context(device), winograd, "tile=4 tiles=0", "r3s3");
}

TEST_F(GpuWinograd, RefusesWhatItDoesNotServe) {
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3p1u2"), "strides of 1");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3p1d2"), "without dilation");
  EXPECT_HAS(refusal("n1c4h9w9k4r1s1"), "3 x 3 and 5 x 5");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s5"), "3 x 3 and 5 x 5");
  EXPECT_HAS(refusal("f16 n1c4h9w9k4r3s3"), "f32 and tf32");
  EXPECT_HAS(refusal("f64 n1c4h9w9k4r3s3"), "f64 is convolved on the CPU");
  EXPECT_HAS(refusal("bwd_filter n1c4h9w9k4r5s5"), "bwd_filter of 3 x 3");
  EXPECT_HAS(refusal("bwd_filter n1c4h9w9k4r3s3", {.prepared = {"x"}}), "no prepared forms of bwd_filter");
  EXPECT_HAS(refusal("bwd_filter n1c4h9w9k4r3s3", {.max_error = 15.9}), "amplified 16 times");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3", {.relative_error = true}), "not an element's own terms");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3", {.prepared = {"x"}}), "of w alone");
  EXPECT_HAS(refusal("n1c4h9w9k4r5s5", {.tuning = "tile=4 tiles=0"}), "tiles of 2");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3", {.max_workspace_bytes = 64}), "needs a workspace of");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3", {.max_error = 15.9}), "amplified 16 times, and max_error is 15.9");
  EXPECT_HAS(refusal("n1c4h9w9k4r5s5", {.max_error = 210}), "amplified 210.25 times");
  EXPECT_HAS(refusal("n1c4194304h4w4k4194304r3s3p1"), "take");
  EXPECT_TRUE(explained("n4c64h56w56k64r3s3p1", {.max_error = 210}).bound.starts_with("16 * (")) << "the smaller tile";
  EXPECT_TRUE(explained("n4c64h56w56k64r3s3p1", {.units = Units::fma}).applicable);
}

TEST_F(GpuWinograd, PassesAreAdjoint) {
  for (const char* geometry : {"n2c5h9w11k7r3s3p1", "nhwc flip n1c4h12w6k6r3s3pt2pl1g2"})
    expect_adjoint(Context(device), conv2d_problem(geometry), winograd, 1, "tile=2 tiles=0");
}

TEST_F(GpuWinograd, RunsAreRecorded) {
  expect_recorded(Context(device), conv2d_problem("n2c5h12w13k6r3s3p1"), winograd);
}

}  // namespace
}  // namespace omniconv
