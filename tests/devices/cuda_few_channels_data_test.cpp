// Gradients of few channels on the matrix units of a device: every form of slices, strips and steps, and numbers of any
// range, those that samples miss among them.
#include <limits>

#include "../conformance/conv2d_testing.h"
#include "checking/verify.h"
#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* few_channels = "conv2d/few_channels/gpu.1";
constexpr Pass served_passes[] = {Pass::backward_data};
constexpr Served served{.passes = served_passes, .geometry = "n2c3h9w8k12r3s3p1"};

class FewChannelsDataGpu : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (device == nullptr) return;
    const int capability = device->facts().compute_capability;
    if (capability != 90) GTEST_SKIP() << "the solver is for compute capability 9.0, and the device has " << capability;
  }

  void expect_right(const std::string& problem, const std::string& tuning = {}) const {
    for (const checking::VerifyResult& result :
         checking::verify(Context(device), parse_problem("bwd_data " + problem),
                          {.solver = {.solver = few_channels, .tuning = tuning}, .sampled = true, .samples = 2000}))
      EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  }
};

// One slice and several, one body of filters and several, strides with and without a factor of dilations, groups, rows
// that are aligned and not, images smaller than a strip and larger, strips beyond the image.
TEST_F(FewChannelsDataGpu, EveryForm) {
  for (const char* geometry : {"n2c3h33w35k64r7s7p3u2",         "n2c3h33w35k64r3s3p1",
                               "n2c3h40w40k10r16s16",           "n3c1h28w28k32r5s5p2",
                               "n2c2h30w31k24r3s5p1",           "n2c4h30w31k100r3s3",
                               "n2c3h67w67k96r11s11u4",         "n2c4h64w64k48r4s4u4",
                               "n2c1h19w90k11r1s1u5",           "n2c3h40w50k33r3s3p20d20",
                               "n2c1h40w40k8r31s31p15",         "n2c12h17w18k24r3s3p1g4",
                               "n2c8h17w18k8r5s3p2g8",          "n1c3h1w1k1r1s1",
                               "n1c3h4w200k65r1s7pw3u2",        "n1c2h200w4k16r7s1ph3",
                               "n2c3h20w20k64r3s3pt0pb2pl2pr1", "n150c3h16w16k64r3s3p1",
                               "n1c3h230w230k130r7s7p3u2",      "n2c3h33w35k64r2s2u7",
                               "n2c3h50w50k8r5s5p4u2d2",        "n2c2h50w50k8r5s5p4u3d2",
                               "n1c3h300w300k200r3s3p1u2",      "n2c3h24w256k64r3s3p1"})
    for (const char* layout : {"nchw", "nhwc"}) expect_right(fmt::format("{} {}", layout, geometry));
}

TEST_F(FewChannelsDataGpu, EveryTypeAndEnding) {
  for (const char* type : {"f32", "tf32"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"", "flip", "acc", "flip acc"})
        for (const char* geometry : {"n2c3h23w25k40r3s3p1", "n2c1h23w24k33r7s5p3u2", "n2c3h24w24k70r3s3p1"})
          expect_right(fmt::format("{} {} {} {}", words, type, layout, geometry));
}

// y of more than 2^22 numbers is looked at in samples.
TEST_F(FewChannelsDataGpu, Sampled) {
  for (const char* layout : {"nchw", "nhwc"})
    for (const char* geometry : {"n8c3h224w224k64r3s3p1", "n8c3h224w224k64r7s7p3u2", "n4c1h180w180k64r3s3p1"})
      expect_right(fmt::format("{} {}", layout, geometry));
}

TEST_F(FewChannelsDataGpu, EveryTuning) {
  for (const char* tuning : {"columns=8 held=1 blocks=1 width=16 side=1 workers=2 resident=1",
                             "columns=8 held=3 blocks=1 width=32 side=1 workers=2 resident=2",
                             "columns=16 held=2 blocks=1 width=64 side=1 workers=2 resident=2",
                             "columns=32 held=4 blocks=1 width=128 side=1 workers=2 resident=1",
                             "columns=64 held=3 blocks=1 width=16 side=1 workers=2 resident=1",
                             "columns=64 held=8 blocks=1 width=32 side=1 workers=2 resident=1"})
    for (const char* problem : {"n3c3h40w41k64r7s7p3u2", "nhwc n3c3h40w41k60r7s3p3", "acc n3c1h40w41k57r8s5p2"})
      expect_right(problem, tuning);
  for (const char* problem : {"n3c3h40w40k64r3s3p1", "nhwc n3c3h40w41k60r3s3p1", "n1c3h9w260k64r3s3p1"})
    for (const char* tuning : {"columns=32 held=3 blocks=2 width=16 side=1 workers=2 resident=2",
                               "columns=8 held=3 blocks=2 width=32 side=1 workers=2 resident=1",
                               "columns=16 held=3 blocks=2 width=64 side=1 workers=2 resident=2",
                               "columns=64 held=4 blocks=2 width=128 side=1 workers=2 resident=1"})
      expect_right(problem, tuning);
}

using FewChannelsDataGpuRanges = FewChannelsDataGpu;

TEST_F(FewChannelsDataGpuRanges, LargeAndSmall) {
  const Context context(device);
  expect_of_scales(context, few_channels, 0x1p100f, 0x1p-110f, served);
  expect_of_scales(context, few_channels, 0x1p-70f, 0x1p-60f, served);   // results below the normal range
  expect_of_scales(context, few_channels, 0x1p-140f, 0x1p120f, served);  // numbers below it
  expect_of_scales(context, few_channels, 0x1p-149f, 1.0f, served);
  expect_of_scales(context, few_channels, 0x1p70f, 0x1p70f, served);  // results beyond it
  expect_of_scales(context, few_channels, 0.0f, 1.0f, served);
  expect_of_scales(context, few_channels, 0.0f, 0.0f, served);
}

TEST_F(FewChannelsDataGpuRanges, LargestBesideSmallest) {
  expect_largest_beside_smallest(Context(device), few_channels, served);
}

TEST_F(FewChannelsDataGpuRanges, InfinitiesAndNaN) {
  expect_infinities_as_defined(
      Context(device), few_channels,
      {"n2c3h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n2c1h20w21k9r5s5p2", "nhwc n2c8h9w12k12r2s3p1g4"},
      served_passes);
}

// Of y that is looked at in samples: zeros but for one number, or numbers of which one is larger, infinite or none,
// wherever it stands.
TEST_F(FewChannelsDataGpuRanges, WhatSamplesMiss) {
  const Context context(device);
  for (const char* text : {"bwd_data n2c3h180w184k64r3s3p1", "bwd_data nhwc n2c3h180w184k64r3s3p1"}) {
    const auto problem = get<Conv2dProblem>(parse_problem(text));
    const Conv2dElements all = elements_of(problem);
    for (const float odd :
         {1.0f, 0x1p40f, 0x1p-30f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      for (const bool alone : {true, false})
        for (const std::int64_t place : {all.y / 2 + 77, all.y - 40}) {
          Arrays arrays{.x = std::vector<float>(static_cast<std::size_t>(all.x)),
                        .w = std::vector<float>(static_cast<std::size_t>(all.w)),
                        .y = std::vector<float>(static_cast<std::size_t>(all.y))};
          for (std::size_t i = 0; i < arrays.w.size(); ++i) arrays.w[i] = static_cast<float>(i % 7) - 3;
          if (!alone)
            for (std::size_t i = 0; i < arrays.y.size(); ++i) arrays.y[i] = (static_cast<float>(i % 11) - 5) * 0x1p-6f;
          arrays.y[static_cast<std::size_t>(place)] = odd;
          expect_as_defined(context, few_channels, problem, arrays);
        }
  }
}

TEST_F(FewChannelsDataGpu, IsReplayed) {
  expect_replayed(Context(device), few_channels,
                  {"bwd_data n2c3h40w41k64r7s7p3u2", "bwd_data nhwc n2c1h28w28k32r5s5p2"});
}

}  // namespace
}  // namespace omniconv
