// conv2d/fft on GPU devices: every form of its kernels, whatever else serves the problems.
#include <algorithm>
#include <string>
#include <vector>

#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"
#include "operations/conv2d/fft/fft.h"

namespace omniconv {
namespace {

constexpr const char* fft = "conv2d/fft/gpu.1";

class GpuFft : public Gpu {
 protected:
  // A tile of 128 x 128 takes more local memory than some devices have.
  std::vector<int> tiles() const {
    std::vector<int> all = {16, 32, 64};
    constexpr std::int64_t bytes_of_largest = 66 << 10;
    if (std::max(device->info().local_memory_bytes, device->facts().most_local_memory_bytes) >= bytes_of_largest)
      all.push_back(128);
    return all;
  }
  // Within its bound on random numbers, by this solver alone.
  void expect_served(const std::string& text, const std::string& tuning = {}, std::int64_t workspace_limit = -1) {
    const checking::VerifyOptions options{
        .solver = {.solver = fft, .max_workspace_bytes = workspace_limit, .tuning = tuning}};
    EXPECT_EQ(expect_exact_and_bounded(Context(device), conv2d_problem(text), options), 1) << text << ' ' << tuning;
  }
  Candidate explained(const std::string& text, SolverOptions options = {}) {
    options.solver = fft;
    return explain(Context(device), parse_problem(text), options).front();
  }
  std::string refusal(const std::string& text, const SolverOptions& options = {}) {
    const Candidate candidate = explained(text, options);
    EXPECT_FALSE(candidate.applicable) << text;
    return candidate.reason;
  }

  // What a run makes of these arrays, whose filters it is given prepared where the options say so.
  std::vector<float> made_of(const std::string& text, SolverOptions options,
                             const std::vector<std::vector<float>>& values) {
    options.solver = fft;
    const Context context(device);
    const Plan plan(context, parse_problem(text), options);
    Queue queue = context.make_queue();
    std::vector<NamedOperand> arrays;
    for (std::size_t i = 0; i < plan.arrays().size(); ++i) {
      const ArraySpec& array = plan.arrays()[i];
      const Buffer buffer = context.allocate(array.bytes());
      queue.upload(buffer, 0, values[i].data(), array.bytes()).wait();
      arrays.push_back({array.name, {buffer}});
      const auto format = plan.format(array.name);
      if (format == nullptr) continue;
      const Buffer prepared = context.allocate(format->bytes);
      plan.prepare(queue, array.name, {buffer}, prepared).wait();
      arrays.back().operand = {prepared, 0, format};
    }
    Buffer workspace;
    if (plan.workspace_bytes() > 0) workspace = context.allocate(plan.workspace_bytes());
    plan.run(queue, arrays, workspace).wait();
    std::vector<float> output;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (plan.arrays()[i].role == ArrayRole::in) continue;
      output.resize(static_cast<std::size_t>(plan.arrays()[i].elements()));
      queue.download(output.data(), arrays[i].operand.buffer, 0, plan.arrays()[i].bytes()).wait();
    }
    return output;
  }
  // Of random arrays, x, w and y.
  std::vector<float> made_by(const std::string& text, const SolverOptions& options) {
    const Conv2dElements elements = elements_of(conv2d_problem(text));
    std::vector<std::vector<float>> values;
    std::uint64_t seed = 1;
    for (const std::int64_t count : {elements.x, elements.w, elements.y}) {
      values.emplace_back(static_cast<std::size_t>(count));
      operations::fill_random(DataType::f32, 0, seed++, std::as_writable_bytes(std::span(values.back())));
    }
    return made_of(text, options, values);
  }
};

// Extents from one element to several ragged tiles; filters as large as the image, and of one row; groups, also of one
// channel, and of one channel and several filters; paddings that are larger than the filter, and unlike ones. A pass
// and layout of each in turn, with what is fused: a compilation each.
TEST_F(GpuFft, GeometriesInEveryPassLayoutAndForm) {
  constexpr const char* words[] = {"bias relu acc", "bwd_data",           "bwd_filter flip", "flip",
                                   "bwd_filter",    "bwd_data flip acc",  "flip bias acc",   "bwd_filter acc",
                                   "bwd_data acc",  "bwd_filter flip acc"};
  std::size_t number = 0;
  for (const char* geometry :
       {"n1c1h1w1k1r1s1", "n2c3h5w7k4r5s7", "n2c4h19w23k5r5s3p2", "n3c5h40w9k7r3s3pt2pb1", "n1c2h14w70k3r1s9pw4",
        "n1c9h33w20k17r7s1ph3", "n2c6h19w23k9r3s3p1g3", "n1c17h9w12k10r5s5p4", "n2c4h20w15k4r3s3p1g4",
        "n1c1h50w40k1r16s15p7", "n1c19h30w9k19r5s5pl5pr1g19", "n1c2h40w33k5r16s16p15", "n9c2h6w7k3r3s3p1",
        "n3c3h9w30k6r7s7p3g3", "n1c3h4w6k2r5s5p9"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const int tile : {16, 32})
        expect_served(fmt::format("{} {} {}", words[number++ % std::size(words)], layout, geometry),
                      fmt::format("tile={} tiles=0", tile));
}

// Every pass and layout of one problem with each tile, of products at every bin and of groups of one channel.
TEST_F(GpuFft, EveryPassLayoutAndTile) {
  for (const int tile : tiles())
    for (const char* geometry : {"n2c5h45w50k4r9s7p3", "n1c5h45w70k5r9s11p4g5"})
      for (const char* words :
           {"", "nhwc flip", "bwd_data flip", "bwd_data nhwc", "bwd_filter flip", "bwd_filter nhwc"})
        expect_served(fmt::format("{} {}", words, geometry), fmt::format("tile={} tiles=0", tile));
}

// Filters as large as the largest tiles, an output of each.
TEST_F(GpuFft, LargestFilters) {
  expect_served("n1c2h70w66k2r64s64", "tile=64 tiles=0");
  expect_served("nhwc bwd_data flip n1c1h66w70k1r64s63p2", "tile=64 tiles=0");
  expect_served("bwd_filter n1c1h66w67k2r64s63p1", "tile=64 tiles=0");
  expect_served("tf32 bias relu n2c9h11w20k18r7s7p3");
  if (tiles().back() < 128) {
    EXPECT_HAS(refusal("n1c1h300w300k1r65s3"), "bytes of local memory, and the device has");
    return;
  }
  expect_served("n1c2h134w130k2r128s128");
  expect_served("nhwc bwd_data flip n1c2h130w140k2r128s127p2g2");
  expect_served("bwd_filter n1c1h130w131k2r128s127p1");
}

TEST_F(GpuFft, ArraysBeginAnywhere) {
  const Context context(device);
  for (const char* text : {"n1c3h18w18k5r5s5p2", "nhwc bwd_data n1c3h8w8k5r5s5p2", "n1c3h16w16k3r5s5p2g3",
                           "bwd_filter n1c3h18w18k5r5s5p2"})
    expect_same_wherever_arrays_begin(context, conv2d_problem(text), fft);
}

// Neither blocks nor a limit of the workspace change a bit, nor do filters that come transformed.
TEST_F(GpuFft, BitsAreOfTheProblemAlone) {
  for (const char* text : {"n3c10h61w60k20r5s5p2", "nhwc n3c12h61w60k20r5s5p2g2", "bwd_data n3c12h61w60k20r5s5p2g2",
                           "bwd_data nhwc n2c10h61w60k6r7s7p3"}) {
    const std::string tuning = "tile=16 tiles=0";
    const std::vector<float> expected = made_by(text, {.tuning = tuning});
    EXPECT_EQ(made_by(text, {.tuning = tuning, .prepared = {"w"}}), expected) << text;
    EXPECT_EQ(made_by(text, {.tuning = "tile=16 tiles=64"}), expected) << text;
    const std::int64_t whole = explained(text, {.tuning = tuning}).workspace_bytes;
    EXPECT_FALSE(explained(text, {.max_workspace_bytes = 0, .tuning = tuning}).applicable);
    for (const std::int64_t limit : {whole - 1, whole * 2 / 3}) {
      const SolverOptions limited{.max_workspace_bytes = limit, .tuning = tuning};
      ASSERT_TRUE(explained(text, limited).applicable) << text << ": " << explained(text, limited).reason;
      EXPECT_LE(explained(text, limited).workspace_bytes, limit) << text;
      EXPECT_EQ(made_by(text, limited), expected) << text;
    }
  }
  // Of groups of one channel the workspace is the filters', which come transformed or not.
  const std::string text = "n2c20h50w40k20r7s7p3g20";
  EXPECT_GT(explained(text).workspace_bytes, 0);
  EXPECT_EQ(explained(text, {.prepared = {"w"}}).workspace_bytes, 0);
  EXPECT_EQ(made_by(text, {.prepared = {"w"}}), made_by(text, {}));
}

// To the filter sums go through one block after the other, so that the workspace is that of one.
TEST_F(GpuFft, GradientsTakeTheWorkspaceOfTheirBlocks) {
  const std::string tuning = "tile=16 tiles=0";
  for (const char* text : {"bwd_filter n3c10h61w60k20r5s5p2", "bwd_filter nhwc n3c12h61w60k10r5s5p2g2"}) {
    const std::int64_t whole = explained(text, {.tuning = tuning}).workspace_bytes;
    EXPECT_EQ(made_by(text, {.max_workspace_bytes = whole, .tuning = tuning}), made_by(text, {.tuning = tuning}))
        << text;
    const Candidate limited = explained(text, {.max_workspace_bytes = whole - 1, .tuning = tuning});
    EXPECT_FALSE(limited.applicable) << text;
    EXPECT_HAS(limited.reason, std::to_string(whole));
    EXPECT_LT(explained(text, {.tuning = "tile=16 tiles=64"}).workspace_bytes, whole) << text;
  }
}

TEST_F(GpuFft, BlocksAreServed) {
  expect_served("bias acc n2c5h100w90k6r5s5p2", "tile=16 tiles=64");
  expect_served("nhwc bwd_data n3c4h100w90k6r5s5p2g2", "tile=16 tiles=64");
  expect_served("bwd_filter acc n3c5h100w90k6r5s5p2", "tile=16 tiles=64");  // of which the last is smaller
  expect_served("bwd_filter flip nhwc n1c4h100w90k6r3s3p1g2", "tile=16 tiles=64");
}

TEST_F(GpuFft, PreparedFiltersAreShared) {
  expect_filters_shared(Context(device), fft, "tile=16 tiles=0", "r3s5");
}

// The tile's amplification is what max_error limits: a smaller tile is taken below that of the larger.
TEST_F(GpuFft, MaxErrorLimitsTheTile) {
  const char* const text = "n1c1h500w500k1r16s16p7";
  const auto bound = [&](const char* tuning) { return explained(text, {.tuning = tuning}).bound; };
  EXPECT_TRUE(bound("tile=16 tiles=0").starts_with("22.6274 * (2/2 + ")) << bound("tile=16 tiles=0");
  EXPECT_TRUE(bound("tile=64 tiles=0").starts_with("90.5097 * (2/2 + ")) << bound("tile=64 tiles=0");
  EXPECT_TRUE(explained(text, {.max_error = 90}).applicable);
  EXPECT_TRUE(explained(text, {.max_error = 45}).bound.starts_with("22.6274 * ("));
  EXPECT_HAS(refusal(text, {.max_error = 22}), "amplified 22.6274 times, and max_error is 22");
}

TEST_F(GpuFft, RefusesWhatItDoesNotServe) {
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3p1u2"), "strides of 1");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3p1dw2"), "without dilation");
  EXPECT_HAS(refusal("n1c1h300w300k1r129s3"), "up to 128 x 128");
  EXPECT_HAS(refusal("f16 n1c4h9w9k4r3s3"), "f32 and tf32");
  EXPECT_HAS(refusal("f64 n1c4h9w9k4r3s3"), "f64 is convolved on the CPU");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3", {.relative_error = true}), "not an element's own terms");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3", {.prepared = {"x"}}), "of w alone");
  EXPECT_HAS(refusal("bwd_filter n1c4h9w9k4r3s3", {.prepared = {"x"}}), "of w alone");
  EXPECT_HAS(refusal("n1c4h90w90k4r17s3", {.tuning = "tile=16 tiles=0"}), "do not hold filters of 17 x 3");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3g4", {.tuning = "tile=16 tiles=64"}), "not cut into blocks");
  EXPECT_HAS(refusal("n1c4h9w9k4r3s3", {.max_workspace_bytes = 64}), "needs a workspace of");
  EXPECT_HAS(refusal("n1c1048576h9w9k1048576r3s3"), "bytes of workspace");
  EXPECT_HAS(refusal("n1c1048577h9w9k4r3s3"), "up to 2^20 channels");
  EXPECT_TRUE(explained("n4c64h56w56k64r9s9p4", {.units = Units::fma}).applicable);
}

// <conv(x, w), dy> = <x, dx> = <w, dw>, of small integers, whose exact results the sums are rounded to.
TEST_F(GpuFft, PassesAreAdjoint) {
  const auto integers = [](std::int64_t count, std::uint32_t seed) {
    std::mt19937 engine(seed);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = static_cast<float>(static_cast<int>(engine() % 7) - 3);
    return values;
  };
  const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * std::nearbyint(b[i]);
    return sum;
  };
  for (const char* geometry : {"n2c5h19w21k7r5s5p2", "nhwc flip n1c4h32w16k6r3s7pt2pl1g2", "n1c6h30w25k6r7s7p3g6"}) {
    const Conv2dElements elements = elements_of(conv2d_problem(geometry));
    const std::vector<float> x = integers(elements.x, 1), w = integers(elements.w, 2), dy = integers(elements.y, 3);
    const std::string text = geometry;
    const double of_y = product(dy, made_of(text, {}, {x, w, dy}));
    EXPECT_EQ(product(x, made_of("bwd_data " + text, {}, {x, w, dy})), of_y) << text;
    EXPECT_EQ(product(w, made_of("bwd_filter " + text, {}, {x, w, dy})), of_y) << text;
  }
}

TEST_F(GpuFft, RunsAreRecorded) {
  for (const char* text : {"n2c5h32w23k6r5s5p2", "n1c6h32w23k6r5s5p2g6"})
    expect_recorded(Context(device), conv2d_problem(text), fft);
}

}  // namespace
}  // namespace omniconv
