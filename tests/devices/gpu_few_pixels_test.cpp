// conv2d/few_pixels on GPU devices: every form of its kernel, whatever else serves the problems.
#include "../conformance/conv2d_testing.h"
#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* few_pixels = "conv2d/few_pixels/gpu.1";

class GpuFewPixels : public Gpu {
 protected:
  // Its loops have barriers, with which not every PoCL is trusted.
  void SetUp() override {
    Gpu::SetUp();
    if (IsSkipped()) return;
    for (const Candidate& candidate : explain(Context(device), conv2d_problem("bwd_filter n1c8h4w4k8r3s3"), {}))
      if (candidate.solver == few_pixels && candidate.applicable) return;
    GTEST_SKIP() << "the device is not trusted with barriers in loops";
  }
  // Exact on small integers and within its bound on random numbers, by this solver alone.
  void expect_served(const std::string& text, const std::string& tuning = {}) {
    const checking::VerifyOptions options{.solver = {.solver = few_pixels, .tuning = tuning}};
    EXPECT_EQ(expect_exact_and_bounded(Context(device), conv2d_problem("bwd_filter " + text), options), 1)
        << text << ' ' << tuning;
  }
};

// Channels and filters that fill tiles and not, sums that are stored as vectors and one by one, planes of an odd and an
// even number of elements, strides, dilations, pads on one side, one image and several.
TEST_F(GpuFewPixels, GeometriesInBothLayouts) {
  int number = 0;
  for (const char* geometry :
       {"n1c40h7w7k36r3s3p1", "n2c33h5w6k35r3s2p1u2", "n1c32h4w4k32r2s2", "n3c3h9w5k5r2s2d2", "n1c64h14w14k20r3s3p1",
        "n1c5h1w3k70r1s3pl1pr1", "n2c36h3w3k8r3s3pt2", "n1c34h6w7k9r5s5p2", "n5c9h1w1k40r1s1"})
    for (const char* layout : {"nchw", "nhwc"}) {
      const auto turn = static_cast<std::size_t>(number++);
      const char* const words = std::array{"", "acc ", "flip "}[turn % 3];
      const char* const type = std::array{"f32", "f16", "bf16", "tf32", "f32"}[turn % 5];
      expect_served(fmt::format("{}{} {} {}", words, type, layout, geometry));
    }
}

TEST_F(GpuFewPixels, TilesOfEveryShape) {
  for (const char* tuning :
       {"warps=1 filters=4 resident=8", "warps=2 filters=16 resident=1", "warps=8 filters=8 resident=1",
        "warps=8 filters=16 resident=1", "warps=4 filters=4 resident=4"})
    for (const char* text : {"n2c40h7w6k70r3s3p1", "acc nhwc n1c40h6w7k70r3s3p1"}) {
      if (device->info().is_gpu || !std::string_view(tuning).starts_with("warps=1 ")) {
        expect_served(text, tuning);
        continue;
      }
      try {
        expect_served(text, tuning);
        ADD_FAILURE() << "PoCL is trusted with " << text;
      } catch (const Error& error) {
        EXPECT_NE(std::string_view(error.what()).find("on a CPU for 32 at most"), std::string_view::npos)
            << error.what();
      }
    }
}

TEST_F(GpuFewPixels, ArraysBeginAnywhere) {
  for (const char* text : {"bwd_filter n2c32h6w8k12r2s2", "bwd_filter nhwc n2c8h6w8k12r3s3p1"})
    expect_same_wherever_arrays_begin(Context(device), conv2d_problem(text), few_pixels);
}

// Zeros around x meet infinities of y, also those whose products are left out, and sums leave fp32's range on their
// way.
TEST_F(GpuFewPixels, SumsThatAreNoNumbers) {
  const Context context(device);
  for (const char* geometry : {"n1c12h9w8k12r3s3p1", "f16 nhwc n1c12h9w12k12r3s3p1u2", "bf16 n2c33h5w5k9r3s3p1"})
    expect_infinities_as_defined(context, few_pixels, {geometry}, std::array{Pass::backward_filter});
}

TEST_F(GpuFewPixels, Refusals) {
  const auto refusal = [&](const std::string& text, const std::string& tuning = {}) {
    return error_of([&] { Plan(Context(device), conv2d_problem(text), {.solver = few_pixels, .tuning = tuning}); });
  };
  EXPECT_HAS(refusal("n1c2h4w4k2r3s3p1"), "serves backward of the filter alone");
  EXPECT_HAS(refusal("bwd_filter f64 n1c2h4w4k2r3s3p1"), "f64 is convolved on the CPU");
  EXPECT_HAS(refusal("bwd_filter n1c4h4w4k4r3s3p1g2"), "serves one group of channels, not several");
  EXPECT_HAS(refusal("bwd_filter n1c4h40w4k4r7s7p3"), "a work item has 36 taps at most, and filters have 7 x 7");
  EXPECT_HAS(refusal("bwd_filter n1c4h4w40k4r3s3p1"), "images have 32 columns and 1024 pixels at most");
  EXPECT_HAS(refusal("bwd_filter n1c4h4w4k4r1s1p2"), "some pixels meet padding alone");
  EXPECT_HAS(refusal("bwd_filter n1c4h4w4k4r5s5p2", "warps=4 filters=8 resident=1"),
             "tuning filters=8: a work item has 144 sums at most, and filters have 25 taps");
}

}  // namespace
}  // namespace omniconv
