// Convolution of few channels on the matrix units of a device: every form of its records, patches and tiles, and
// numbers of any range.
#include <limits>

#include "../conformance/conv2d_testing.h"
#include "checking/verify.h"
#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* few_channels = "conv2d/few_channels/gpu.1";
constexpr Pass served_passes[] = {Pass::forward};
constexpr Served served{.passes = served_passes, .geometry = "n2c3h9w8k12r3s3p1"};

class FewChannelsGpu : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (device == nullptr) return;
    const int capability = device->facts().compute_capability;
    if (capability != 90) GTEST_SKIP() << "the solver is for compute capability 9.0, and the device has " << capability;
  }

  void expect_right(const std::string& problem, const std::string& tuning = {}) const {
    for (const checking::VerifyResult& result :
         checking::verify(Context(device), parse_problem(problem),
                          {.solver = {.solver = few_channels, .tuning = tuning}, .sampled = true, .samples = 2000}))
      EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  }
};

// One tap a record and several, strides whose columns lie apart, taps further than neighbours, groups, few and many
// filters, images smaller than a tile and larger.
TEST_F(FewChannelsGpu, EveryForm) {
  for (const char* geometry : {"n2c3h33w35k64r7s7p3u2",         "n2c3h33w35k64r3s3p1",
                               "n2c3h40w40k10r16s16",           "n3c1h28w28k32r5s5p2",
                               "n2c2h30w31k24r3s5p1",           "n2c4h30w31k100r3s3",
                               "n2c3h67w67k96r11s11u4",         "n2c4h64w64k48r4s4u4",
                               "n2c1h19w90k11r1s1u5",           "n2c3h40w50k33r3s3p20d20",
                               "n2c1h40w40k8r31s31p15",         "n2c12h17w18k24r3s3p1g4",
                               "n2c8h17w18k8r5s3p2g8",          "n1c3h1w1k1r1s1",
                               "n1c3h4w200k65r1s7pw3u2",        "n1c2h200w4k16r7s1ph3",
                               "n2c3h20w20k64r3s3pt0pb2pl2pr1", "n150c3h16w16k64r3s3p1",
                               "n1c3h230w230k130r7s7p3u2",      "n2c3h33w35k64r2s2u7"})
    for (const char* layout : {"nchw", "nhwc"}) expect_right(fmt::format("{} {}", layout, geometry));
}

TEST_F(FewChannelsGpu, EveryTypeAndWhatIsFused) {
  for (const char* type : {"f32", "tf32"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"bias relu acc", "flip bias", "acc", "relu"})
        for (const char* geometry : {"n2c3h23w25k40r3s3p1", "n2c1h23w25k33r7s5p3u2"})
          expect_right(fmt::format("{} {} {} {}", words, type, layout, geometry));
}

TEST_F(FewChannelsGpu, EveryTuning) {
  for (const char* tuning : {"columns=8 held=8 blocks=1 resident=1", "columns=8 held=3 blocks=2 resident=3",
                             "columns=16 held=4 blocks=2 resident=2", "columns=16 held=1 blocks=1 resident=3",
                             "columns=32 held=2 blocks=2 resident=1", "columns=32 held=2 blocks=1 resident=3",
                             "columns=64 held=1 blocks=1 resident=1", "columns=64 held=1 blocks=2 resident=2"})
    for (const char* problem : {"n3c3h40w41k64r7s7p3u2", "nhwc n3c3h40w41k60r3s3p1", "bias n3c1h40w41k57r5s5p2"})
      expect_right(problem, tuning);
}

using FewChannelsGpuRanges = FewChannelsGpu;

TEST_F(FewChannelsGpuRanges, LargeAndSmall) {
  const Context context(device);
  expect_of_scales(context, few_channels, 0x1p100f, 0x1p-110f, served);
  expect_of_scales(context, few_channels, 0x1p-70f, 0x1p-60f, served);   // results below the normal range
  expect_of_scales(context, few_channels, 0x1p-140f, 0x1p120f, served);  // numbers below it
  expect_of_scales(context, few_channels, 0x1p-149f, 1.0f, served);
  expect_of_scales(context, few_channels, 0x1p70f, 0x1p70f, served);  // results beyond it
  expect_of_scales(context, few_channels, 0.0f, 1.0f, served);
  expect_of_scales(context, few_channels, 0.0f, 0.0f, served);
}

TEST_F(FewChannelsGpuRanges, LargestBesideSmallest) {
  expect_largest_beside_smallest(Context(device), few_channels, served);
}

TEST_F(FewChannelsGpuRanges, InfinitiesAndNaN) {
  expect_infinities_as_defined(
      Context(device), few_channels,
      {"n2c3h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n2c1h20w21k9r5s5p2", "nhwc n2c8h9w12k12r2s3p1g4"},
      served_passes);
}

TEST_F(FewChannelsGpu, IsReplayed) {
  expect_replayed(Context(device), few_channels, {"n2c3h40w41k64r7s7p3u2", "nhwc n2c1h28w28k32r5s5p2"});
}

}  // namespace
}  // namespace omniconv
