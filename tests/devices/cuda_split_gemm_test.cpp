// Convolution on the matrix units of a device: every form of its tiles, and numbers of any range.
#include <algorithm>
#include <limits>

#include "../conformance/conv2d_testing.h"
#include "../list_testing.h"
#include "checking/verify.h"
#include "gpu_testing.h"
#include "range_testing.h"

namespace omniconv {
namespace {

constexpr const char* solver = "conv2d/split_gemm/gpu.1";

class SplitGemm : public Gpu {
 protected:
  void SetUp() override {
    Gpu::SetUp();
    if (device == nullptr) return;
    const int capability = device->facts().compute_capability;
    if (capability != 90) GTEST_SKIP() << "the solver is for compute capability 9.0, and the device has " << capability;
  }

  void expect_right(const Problem& problem) const {
    const Context context(device);
    const Candidate candidate = explain(context, problem, {.solver = solver}).front();
    if (!candidate.applicable) return;
    ++checked;
    for (const checking::VerifyResult& result :
         checking::verify(context, problem, {.solver = {.solver = solver}, .sampled = true, .samples = 1000}))
      EXPECT_EQ(result.status, checking::Status::ok) << to_text(problem) << ": " << result.reason;
  }
  mutable int checked = 0;
};

TEST_F(SplitGemm, EveryForm) {
  int number = 0;
  for (Conv2dProblem problem : listed_problems<Conv2dProblem>("tiles.txt"))
    for (const Pass pass : all_passes) {
      problem.layout = ++number % 2 == 0 ? Layout::nchw : Layout::nhwc;
      expect_right(with_pass(problem, pass));
    }
  EXPECT_GT(checked, 80);
}

TEST_F(SplitGemm, EveryTypeAndWhatIsFused) {
  for (const char* type : {"f32", "tf32", "f16", "bf16"})
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words : {"bias relu acc", "flip bias", "bwd_data acc", "bwd_filter acc", "bwd_filter flip"})
        for (const char* geometry : {"n2c72h13w11k40r3s3p1", "n2c3h23w25k32r3s3p1u2"})
          expect_right(parse_problem(fmt::format("{} {} {} {}", words, type, layout, geometry)));
  EXPECT_EQ(checked, 4 * 2 * 5 * 2);
}

TEST_F(SplitGemm, EveryTuning) {
  const Context context(device);
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "tile_n=64 resident=1 parts=2 shared=0 raw=0",
        "tile_n=64 resident=2 parts=1 shared=0 raw=0", "tile_n=32 resident=2 parts=3 shared=0 raw=0",
        "tile_n=128 resident=1 parts=1 shared=1 raw=0", "tile_n=64 resident=2 parts=2 shared=1 raw=0",
        "tile_n=32 resident=2 parts=1 shared=1 raw=0"})
    for (const char* problem :
         {"n2c128h14w14k128r3s3p1", "bwd_data nhwc n2c128h14w14k128r3s3p1", "tf32 n2c96h14w14k72r3s5p2dw2",
          "bwd_data n3c40h13w15k48r5s5p2", "bf16 nhwc n2c96h14w14k40r3s5p2"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
}

// Rows of a split in registers: from one box of channels a tap to several, steps of one tap and of two.
TEST_F(SplitGemm, RawRows) {
  const Context context(device);
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=1", "tile_n=64 resident=1 parts=1 shared=0 raw=1",
        "tile_n=64 resident=1 parts=2 shared=0 raw=1"})
    for (const char* problem :
         {"nhwc n2c128h14w14k128r3s3p1", "nhwc bias relu acc n3c264h13w11k200r1s1", "tf32 nhwc n2c96h14w14k72r3s5p2dw2",
          "nhwc flip n2c32h17w13k48r5s5p2u2", "nhwc n2c128h9w9k96r3s3p1g2", "nhwc n2c100h9w9k31r3s3p1u3",
          "bwd_data nhwc n3c40h13w15k32r5s5p2", "bwd_data acc nhwc n2c72h14w15k64r3s3p1",
          "bwd_data tf32 nhwc n2c72h14w15k60r3s3p1", "n3c264h13w12k72r1s1", "bias relu n2c512h16w16k72r1s1g2",
          "bwd_data acc n5c40h7w4k200r1s1", "tf32 n3c264h13w12k72r1s1"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  EXPECT_NE(explain(context, parse_problem("n2c64h9w9k64r1s1"),
                    {.solver = solver, .tuning = "tile_n=64 resident=1 parts=1 shared=0 raw=1"})
                .front()
                .reason,
            "");
}

// Backward of the data with a stride, whose positions are blocks of pixels.
TEST_F(SplitGemm, BlocksOfPixels) {
  for (const char* layout : {"nchw", "nhwc"})
    for (const char* words : {"f32", "acc f32", "bf16", "flip tf32"})
      for (const char* geometry : {"n2c3h32w32k64r7s7p3u2", "n2c3h33w35k24r7s7p3u2", "n2c64h16w16k32r1s1u2",
                                   "n2c20h17w15k32r1s1u2", "n2c3h40w44k16r4s4u4", "n2c8h19w22k16r3s3p1uw2",
                                   "n2c12h15w16k24r3s2p1u3g2", "n1c3h48w48k16r16s16u16", "n1c4h13w13k512r1s1u3"})
        expect_right(parse_problem(fmt::format("bwd_data {} {} {}", layout, words, geometry)));
  EXPECT_EQ(checked, 2 * 4 * 9);
}

// Also where copies could read the arrays themselves: those at multiples of 16 bytes.
TEST_F(SplitGemm, ArraysBeginAnywhere) {
  for (const char* type : {"f32", "tf32", "bf16"})
    for (const Pass pass : all_passes)
      expect_same_wherever_arrays_begin(
          Context(device), with_pass(conv2d_problem(fmt::format("{} nhwc n2c64h9w8k72r3s3p1", type)), pass), solver);
  for (const Pass pass : all_passes)
    expect_same_wherever_arrays_begin(Context(device), with_pass(conv2d_problem("n2c264h9w8k264r1s1"), pass), solver);
}

using SplitGemmRanges = SplitGemm;

TEST_F(SplitGemmRanges, LargeAndSmall) {
  expect_of_scales(Context(device), solver, 0x1p100f, 0x1p-110f);
  expect_of_scales(Context(device), solver, 0x1p-70f, 0x1p-60f);   // results below the normal range
  expect_of_scales(Context(device), solver, 0x1p-140f, 0x1p120f);  // numbers below it
  expect_of_scales(Context(device), solver, 0x1p-149f, 1.0f);
  expect_of_scales(Context(device), solver, 0x1p70f, 0x1p70f);  // results beyond it
  expect_of_scales(Context(device), solver, 0.0f, 1.0f);
  expect_of_scales(Context(device), solver, 0.0f, 0.0f);
}

// Of arrays this large a sample alone is looked at for the scale: what was not looked at may be larger than all of it,
// infinite or NaN, or all that is there.
TEST_F(SplitGemmRanges, LargeNumbersBesideTheSample) {
  constexpr std::size_t not_looked_at = 40;  // in the second line of 32, of which the first is
  for (const Pass pass : all_passes) {
    const Conv2dProblem problem = with_pass(conv2d_problem("n1c16h1024w1032k16r1s1"), pass);
    const Conv2dElements all = elements_of(problem);
    const Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
    const auto expect_with = [&](float number, bool alone) {
      Arrays changed = arrays;
      for (std::vector<float>* const each : {&changed.x, &changed.y}) {
        if (alone) std::fill(each->begin(), each->end(), 0.0f);
        (*each)[not_looked_at] = number;
      }
      expect_as_defined(Context(device), solver, problem, changed);
    };
    expect_with(1.5f, false);  // is a part beside the others
    expect_with(1e6f, false);
    expect_with(0x1p-100f, true);
    if (pass == Pass::forward) expect_with(std::numeric_limits<float>::infinity(), false);
  }
}

TEST_F(SplitGemmRanges, LargestBesideSmallest) {
  expect_largest_beside_smallest(Context(device), solver);
}

TEST_F(SplitGemmRanges, InfinitiesAndNaN) {
  expect_infinities_as_defined(
      Context(device), solver,
      {"n2c20h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n1c300h3w3k12r1s1", "nhwc n2c64h9w8k64r3s3p1",
       "n2c3h9w12k12r4s4p1u2", "n2c20h9w8k12r1s1u2", "n2c64h9w8k64r1s1"});
}

TEST_F(SplitGemm, IsReplayed) {
  expect_replayed(Context(device), solver,
                  {"n2c64h9w8k72r3s3p1", "nhwc n2c64h9w8k72r3s3p1", "n1c512h4w4k64r3s3p1",
                   "bwd_data n2c64h9w8k72r3s3p1u2", "bwd_filter n2c64h9w8k72r3s3p1"});
}

}  // namespace
}  // namespace omniconv
