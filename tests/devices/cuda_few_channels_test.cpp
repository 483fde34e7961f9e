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
  for (const char* type : {"f32", "tf32", "f16", "bf16"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"bias relu acc", "flip bias", "acc", "relu"})
        for (const char* geometry : {"n2c3h23w25k40r3s3p1", "n2c1h23w25k33r7s5p3u2"})
          expect_right(fmt::format("{} {} {} {}", words, type, layout, geometry));
}

// Each serves some of the problems: filters and patches of the others do not go together in local memory.
TEST_F(FewChannelsGpu, EveryTuning) {
  int checked = 0;
  for (const char* tuning : {"columns=8 held=8 blocks=1 width=64 side=1 workers=2 resident=1",
                             "columns=8 held=3 blocks=2 width=16 side=1 workers=2 resident=3",
                             "columns=16 held=4 blocks=2 width=32 side=1 workers=2 resident=2",
                             "columns=16 held=1 blocks=1 width=16 side=1 workers=2 resident=3",
                             "columns=32 held=2 blocks=2 width=64 side=1 workers=2 resident=1",
                             "columns=32 held=2 blocks=1 width=32 side=1 workers=2 resident=3",
                             "columns=64 held=1 blocks=1 width=32 side=1 workers=4 resident=1",
                             "columns=24 held=1 blocks=1 width=16 side=2 workers=4 resident=1",
                             "columns=40 held=1 blocks=1 width=32 side=4 workers=2 resident=1",
                             "columns=64 held=1 blocks=1 width=16 side=1 workers=2 resident=1",
                             "columns=64 held=1 blocks=2 width=64 side=1 workers=2 resident=2"})
    for (const char* problem :
         {"n3c3h40w41k64r7s7p3u2", "n2c3h33w150k50r3s3", "n2c3h33w84k64r3s3p1", "nhwc n3c3h40w41k60r3s3p1",
          "bias n3c1h40w41k57r5s5p2", "n2c3h40w90k10r8s8", "f16 n2c3h33w80k64r3s3p1", "bf16 nhwc n2c3h33w84k64r3s3p1",
          "bias bf16 nhwc n2c3h40w90k10r8s8"}) {
      const SolverOptions options{.solver = few_channels, .tuning = tuning};
      if (!explain(Context(device), parse_problem(problem), options).front().applicable) continue;
      expect_right(problem, tuning), ++checked;
    }
  EXPECT_GE(checked, 70);
}

// Boxes, and where they cannot begin; of enough images that a group makes several tiles.
TEST_F(FewChannelsGpu, ArraysBeginAnywhere) {
  for (const char* problem : {"n40c3h64w64k64r3s3p1", "nhwc n40c3h64w64k64r3s3p1", "f16 n40c3h64w64k64r3s3p1"})
    expect_right(problem);
  expect_same_wherever_arrays_begin(Context(device), conv2d_problem("n2c3h24w40k64r3s3p1"), few_channels);
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
  expect_infinities_as_defined(Context(device), few_channels,
                               {"n2c3h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n2c1h20w21k9r5s5p2",
                                "nhwc n2c8h9w12k12r2s3p1g4", "f16 n2c3h9w12k16r3s3p1", "bf16 nhwc n2c1h20w21k9r5s5p2"},
                               served_passes);
}

TEST_F(FewChannelsGpu, IsReplayed) {
  expect_replayed(Context(device), few_channels, {"n2c3h40w41k64r7s7p3u2", "nhwc n2c1h28w28k32r5s5p2"});
}

// Backward of the filter: of few channels, and of few filters.
constexpr const char* few_filters = "conv2d/few_channels/gpu-filter.1";
constexpr Pass filter_passes[] = {Pass::backward_filter};
constexpr Served filter_served{.passes = filter_passes, .geometry = "n2c3h9w8k12r3s3p1"};

class FewChannelsFilterGpu : public FewChannelsGpu {
 protected:
  void expect_filter_right(const std::string& problem, const std::string& tuning = {}) const {
    for (const checking::VerifyResult& result :
         checking::verify(Context(device), parse_problem("bwd_filter " + problem),
                          {.solver = {.solver = few_filters, .tuning = tuning}, .sampled = true, .samples = 2000}))
      EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  }
};

// Rows that begin at multiples of 16 bytes and not, more than 64 of them and fewer, images of less than a step, rows of
// less than eight pixels, several sets of columns, arrays that are sampled.
TEST_F(FewChannelsFilterGpu, EveryForm) {
  for (const char* geometry : {"n2c3h33w35k64r7s7p3u2",
                               "n2c3h33w35k64r3s3p1",
                               "n2c3h32w36k64r3s3p1",
                               "n2c3h40w40k10r16s16",
                               "n3c1h28w28k20r5s5",
                               "n2c2h30w31k24r3s5p1",
                               "n2c4h30w31k100r3s3",
                               "n2c3h67w67k96r11s11u4",
                               "n2c4h64w64k48r4s4u4",
                               "n2c1h1w2000k64r1s400uw160",
                               "n2c3h50w50k33r3s3p20d20",
                               "n2c1h40w40k8r31s31p15",
                               "n2c12h17w18k24r3s3p1g4",
                               "n2c8h17w18k8r5s3p2g8",
                               "n1c3h1w1k1r1s1",
                               "n9c3h5w6k7r3s3p1",
                               "n1c2h20w390k4r1s9pl4pr4",
                               "n1c2h216w38k4r9s1pt4pb4",
                               "n1c32h108w192k3r5s5p2",
                               "n8c64h18w18k1r3s3p1",
                               "n2c70h19w21k2r2s3pt1pb0pl0pr2",
                               "n2c64h30w30k4r3s3p2d2g2",
                               "n3c3h20w20k64r3s3pt0pb2pl2pr1",
                               "n40c3h112w112k64r3s3p1",
                               "n5c8h15w17k16r3s3p1",
                               "n300c3h2w2k65r2s2"})
    for (const char* layout : {"nchw", "nhwc"}) expect_filter_right(fmt::format("{} {}", layout, geometry));
}

TEST_F(FewChannelsFilterGpu, EveryTypeAndWord) {
  for (const char* type : {"f32", "tf32"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"", "acc", "flip", "flip acc"})
        for (const char* geometry : {"n2c3h23w25k40r3s3p1", "n2c1h23w25k33r7s5p3u2", "n2c40h23w25k2r3s2p1"})
          expect_filter_right(fmt::format("{} {} {} {}", words, type, layout, geometry));
}

TEST_F(FewChannelsFilterGpu, EveryTuning) {
  for (const char* tuning :
       {"columns=8 held=4 stages=2 workers=4 rows_of_x=0", "columns=16 held=2 stages=1 workers=4 rows_of_x=0",
        "columns=24 held=4 stages=2 workers=2 rows_of_x=0", "columns=32 held=1 stages=2 workers=4 rows_of_x=1",
        "columns=40 held=4 stages=1 workers=2 rows_of_x=0", "columns=48 held=3 stages=2 workers=2 rows_of_x=1",
        "columns=56 held=2 stages=2 workers=2 rows_of_x=0", "columns=56 held=3 stages=1 workers=2 rows_of_x=1"})
    for (const char* problem : {"n3c8h40w41k7r5s5p2", "nhwc n3c8h40w44k8r5s5p2", "flip acc n3c6h40w41k8r5s5p2"})
      expect_filter_right(problem, tuning);
}

TEST_F(FewChannelsFilterGpu, LargeAndSmall) {
  const Context context(device);
  expect_of_scales(context, few_filters, 0x1p100f, 0x1p-110f, filter_served);
  expect_of_scales(context, few_filters, 0x1p-70f, 0x1p-60f, filter_served);   // results below the normal range
  expect_of_scales(context, few_filters, 0x1p-140f, 0x1p120f, filter_served);  // numbers below it
  expect_of_scales(context, few_filters, 0x1p70f, 0x1p70f, filter_served);     // results beyond it
  expect_of_scales(context, few_filters, 0.0f, 1.0f, filter_served);
  expect_largest_beside_smallest(context, few_filters, filter_served);
}

TEST_F(FewChannelsFilterGpu, InfinitiesAndNaN) {
  expect_infinities_as_defined(
      Context(device), few_filters,
      {"n2c3h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n2c20h20w21k2r5s5p2", "nhwc n2c8h9w12k12r2s3p1g4"},
      filter_passes);
}

TEST_F(FewChannelsFilterGpu, IsReplayed) {
  expect_replayed(Context(device), few_filters,
                  {"bwd_filter n2c3h40w41k64r7s7p3u2", "bwd_filter nhwc n2c28h28w28k2r5s5p2"});
}

// The same by warps: few filters and many taps.
constexpr const char* by_warps = "conv2d/few_channels/gpu-filter-warps.1";

class FewChannelsWarpsGpu : public FewChannelsGpu {
 protected:
  void expect_filter_right(const std::string& problem, const std::string& tuning = {}) const {
    for (const checking::VerifyResult& result :
         checking::verify(Context(device), parse_problem("bwd_filter " + problem),
                          {.solver = {.solver = by_warps, .tuning = tuning}, .sampled = true, .samples = 2000}))
      EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  }
};

// One filter to more than a set has, taps that share pixels and not, every number of phases, rows that end within a
// tile, images of less than one, arrays that are sampled.
TEST_F(FewChannelsWarpsGpu, EveryForm) {
  for (int filters = 1; filters <= 17; ++filters) expect_filter_right(fmt::format("n2c3h20w23k{}r3s16p1", filters));
  for (const char* geometry :
       {"n10c3h128w128k10r16s16", "n2c3h67w67k96r11s11u4", "n2c3h33w35k64r7s7p3u2", "n2c1h1w2000k64r1s400uw160",
        "n2c3h50w50k33r3s3p20d20", "n2c1h40w40k8r31s31p15", "n2c12h17w18k24r3s3p1g4", "n2c8h17w18k8r5s3p2g8",
        "n1c3h1w1k1r1s1", "n9c3h5w6k7r3s3p1", "n1c2h20w390k4r1s9pl4pr4", "n1c2h216w38k4r9s1pt4pb4",
        "n2c3h40w57k12r5s16p4u2d2", "n2c2h30w31k5r2s2u7", "n3c3h20w20k64r3s3pt0pb2pl2pr1", "n5c8h15w17k16r3s3p1",
        "n40c3h112w112k64r3s3p1", "n300c3h2w2k65r2s2"})
    for (const char* layout : {"nchw", "nhwc"}) expect_filter_right(fmt::format("{} {}", layout, geometry));
  for (const char* words : {"acc", "flip", "tf32", "tf32 flip acc nhwc"})
    for (const char* geometry : {"n2c3h33w35k10r16s16", "n2c3h67w67k24r11s11u4"})
      expect_filter_right(fmt::format("{} {}", words, geometry));
}

TEST_F(FewChannelsWarpsGpu, EveryTuning) {
  for (const char* tuning : {"rows=16 blocks=1 warps=4 resident=2 width=16 height=3 sixteens=1",
                             "rows=16 blocks=2 warps=6 resident=2 width=32 height=2 sixteens=2",
                             "rows=32 blocks=4 warps=8 resident=1 width=64 height=1 sixteens=4",
                             "rows=16 blocks=6 warps=12 resident=1 width=48 height=5 sixteens=1",
                             "rows=16 blocks=8 warps=16 resident=1 width=96 height=4 sixteens=2",
                             "rows=32 blocks=12 warps=4 resident=2 width=32 height=7 sixteens=2"})
    for (const char* problem : {"n3c3h40w41k7r5s5p2", "nhwc n3c3h40w44k20r3s16p2", "flip acc n3c2h40w41k40r5s5p2u2"})
      expect_filter_right(problem, tuning);
}

TEST_F(FewChannelsWarpsGpu, NumbersOfAnyRange) {
  const Context context(device);
  expect_of_scales(context, by_warps, 0x1p100f, 0x1p-110f, filter_served);
  expect_of_scales(context, by_warps, 0x1p-140f, 0x1p120f, filter_served);  // numbers below the normal range
  expect_of_scales(context, by_warps, 0x1p70f, 0x1p70f, filter_served);     // results beyond it
  expect_of_scales(context, by_warps, 0.0f, 1.0f, filter_served);
  expect_largest_beside_smallest(context, by_warps, filter_served);
  expect_infinities_as_defined(context, by_warps, {"n2c3h9w8k12r3s3p1", "nhwc n2c8h9w12k12r2s3p1g4"}, filter_passes);
}

TEST_F(FewChannelsWarpsGpu, IsReplayed) {
  expect_replayed(Context(device), by_warps,
                  {"bwd_filter n2c3h40w41k10r16s16", "bwd_filter nhwc n2c3h67w67k24r11s11u4"});
}

}  // namespace
}  // namespace omniconv
