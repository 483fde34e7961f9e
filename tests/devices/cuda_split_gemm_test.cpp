// Convolution on the matrix units of a device: every form of its tiles, and numbers of any range.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

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

  void expect_right(const Problem& problem, bool is_relative = false) const {
    const Context context(device);
    const SolverOptions options{.solver = solver, .relative_error = is_relative};
    const Candidate candidate = explain(context, problem, options).front();
    if (!candidate.applicable) return;
    ++checked;
    for (const checking::VerifyResult& result :
         checking::verify(context, problem, {.solver = options, .sampled = true, .samples = 1000}))
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

// Rows and columns to the filter that boxes of 64 and tiles of 64 or 128 do not fit; pairs of tiles, and rows that fill
// rounds.
TEST_F(SplitGemm, TilesOf96ColumnsNarrowBoxesAndPairs) {
  const Context context(device);
  for (const char* tuning :
       {"tile_n=96 resident=1 parts=1 shared=0 raw=0", "tile_n=96 resident=1 parts=2 shared=0 raw=0",
        "tile_n=64 resident=2 parts=2 shared=0 raw=0", "tile_n=128 resident=1 parts=2 shared=0 raw=1"})
    for (const char* problem :
         {"bwd_filter n8c32h12w12k96r5s5p2", "bwd_filter nhwc n8c96h12w12k96r3s3p1",
          "bwd_filter flip n8c80h12w12k128r3s3p1u2g2", "bwd_filter acc tf32 nhwc n8c224h12w12k100r3s3p1"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  for (const char* tuning :
       {"tile_n=64 resident=1 parts=1 shared=3 raw=0", "tile_n=64 resident=2 parts=1 shared=1 raw=0"})
    for (const char* problem :
         {"bias relu n2c64h18w20k64r3s3p1", "n3c64h10w18k64r3s3", "bf16 nhwc n2c64h19w20k72r3s3p1",
          "bwd_data nhwc n2c64h31w33k40r5s5p2u2", "bwd_data n64c32h28w28k96r5s5p2", "nhwc n60c96h28w28k32r5s5p2"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  for (const char* tuning :
       {"tile_n=96 resident=1 parts=1 shared=0 raw=0", "tile_n=96 resident=1 parts=1 shared=1 raw=0"})
    for (const char* problem : {"bias relu n2c64h14w14k96r3s3p1", "nhwc n2c32h14w14k96r5s5p2",
                                "bwd_data bf16 nhwc n2c96h14w14k72r3s3p1", "bwd_data acc f16 n2c190h14w14k64r3s3p1"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
}

// Of one product tiles have 256 columns, too.
TEST_F(SplitGemm, WideTiles) {
  const Context context(device);
  for (const char* tuning :
       {"tile_n=256 resident=1 parts=1 shared=0 raw=0", "tile_n=256 resident=1 parts=2 shared=0 raw=0"})
    for (const char* problem :
         {"bf16 nhwc bias relu n3c128h14w14k256r3s3p1", "tf32 n2c96h14w14k300r3s5p2dw2",
          "f16 acc n2c32h15w13k250r3s3p1u2", "bf16 nhwc n2c328h9w9k200r1s1", "bwd_data bf16 nhwc n2c256h14w14k64r3s3p1",
          "bwd_data tf32 n2c250h14w14k64r3s3p1", "bwd_filter bf16 nhwc n4c64h14w14k256r3s3p1",
          "bwd_filter acc tf32 n3c40h13w15k250r3s3p1"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  EXPECT_NE(explain(context, parse_problem("n2c64h9w9k256r1s1"),
                    {.solver = solver, .tuning = "tile_n=256 resident=1 parts=1 shared=0 raw=0"})
                .front()
                .reason,
            "");
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

// Products of one tap over pixels, whose rows are split in registers: of either array, images of whole steps or not.
TEST_F(SplitGemm, RawRowsOfFilters) {
  const Context context(device);
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=1", "tile_n=64 resident=1 parts=1 shared=0 raw=1",
        "tile_n=64 resident=1 parts=4 shared=0 raw=1"})
    for (const char* problem :
         {"bwd_filter n8c64h16w16k256r1s1", "bwd_filter acc n9c72h9w8k40r1s1", "bwd_filter tf32 n9c40h14w14k200r1s1",
          "bwd_filter n8c96h14w14k128r1s1g2", "bwd_filter nhwc n8c64h16w16k256r1s1", "bwd_filter nhwc n9c72h9w7k31r1s1",
          "bwd_filter acc nhwc n9c40h9w7k208r1s1g4", "bwd_filter tf32 nhwc n9c260h9w7k100r1s1"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
}

// The same at all taps: rows of y beside channels of x at taps.
TEST_F(SplitGemm, RawRowsOfFiltersAtTaps) {
  const Context context(device);
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=2 shared=0 raw=1", "tile_n=128 resident=2 parts=2 shared=0 raw=1",
        "tile_n=64 resident=1 parts=1 shared=0 raw=1"})
    for (const char* problem : {"bwd_filter n8c64h16w16k64r3s3p1", "bwd_filter acc nhwc n9c72h9w8k40r3s3p1",
                                "bwd_filter tf32 n9c40h16w16k200r3s3p1u2", "bwd_filter nhwc n8c96h14w14k128r3s3p1g2",
                                "bwd_filter flip n8c32h16w16k96r5s5p2d2", "bwd_filter n8c3h32w32k64r7s7p3u2"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem), {.solver = {.solver = solver, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
}

// Few channels, taps among them or not, as tiles of whole boxes are fewer.
TEST_F(SplitGemm, FoldedFilters) {
  for (const char* layout : {"nchw", "nhwc"})
    for (const char* words : {"f32", "acc f32", "bf16", "flip tf32"})
      for (const char* geometry : {"n4c32h28w28k96r5s5p2", "n4c20h17w19k70r3s3p1u2", "n2c40h16w16k32r1s5pl2pr2"})
        expect_right(parse_problem(fmt::format("bwd_filter {} {} {}", layout, words, geometry)));
  EXPECT_EQ(checked, 2 * 4 * 3);
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

// The same of rows that are split in registers: tiles are then made again, also where samples are all zeros.
TEST_F(SplitGemmRanges, LargeNumbersBesideTheSampleOfRawRows) {
  constexpr std::size_t not_looked_at = 40;
  for (const char* text : {"nhwc n1c64h560w512k8r1s1", "n1c64h560w512k8r1s1", "bwd_filter nhwc n1c64h560w512k8r1s1",
                           "bwd_filter n1c64h560w512k8r1s1"}) {
    const Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements all = elements_of(problem);
    const Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
    const auto expect_with = [&](float number, bool alone) {
      Arrays changed = arrays;
      if (alone) std::fill(changed.x.begin(), changed.x.end(), 0.0f);
      changed.x[not_looked_at] = number;
      expect_as_defined(Context(device), {solver, false, "tile_n=64 resident=1 parts=1 shared=0 raw=1"}, problem,
                        changed);
    };
    expect_with(1.5f, false);
    expect_with(1e6f, false);
    expect_with(0x1p-100f, true);
    expect_with(0.0f, true);
    if (problem.pass == Pass::forward) expect_with(-std::numeric_limits<float>::infinity(), false);
  }
}

// The same of rows of y beside columns of x at taps: of either the number that no sample has.
TEST_F(SplitGemmRanges, LargeNumbersBesideTheSampleOfRowsAtTaps) {
  constexpr std::size_t not_looked_at = 40;
  for (const char* text : {"bwd_filter n1c8h512w512k64r3s3p1", "bwd_filter nhwc n1c8h512w512k64r3s3p1"}) {
    const Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements all = elements_of(problem);
    const Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
    const auto expect_with = [&](float of_x, float of_y) {
      Arrays changed = arrays;
      changed.x[not_looked_at] = of_x, changed.y[not_looked_at] = of_y;
      expect_as_defined(Context(device), {solver, false, "tile_n=128 resident=2 parts=2 shared=0 raw=1"}, problem,
                        changed);
    };
    expect_with(1e6f, 1.0f);
    expect_with(1.0f, 1e6f);
    expect_with(-1e6f, 1e7f);
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

// Numbers of 16 bits are multiplied as they are: zeros around y, of channels that are not there and of taps that are
// not met are beside infinities; and bf16 has sums beyond fp32's range, and such that leave it on their way.
TEST_F(SplitGemmRanges, NumbersOfSixteenBits) {
  for (const char* type : {"f16", "bf16"})
    for (const char* geometry :
         {"n2c20h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n1c300h3w3k12r1s1", "nhwc n2c64h9w8k64r3s3p1",
          "n2c3h9w12k12r4s4p1u2", "n2c20h9w12k12r1s1u2", "nhwc n2c40h9w8k72r3s3p1", "n2c72h16w16k40r3s3p1g2"}) {
      const std::string problem = fmt::format("{} {}", type, geometry);
      expect_infinities_as_defined(Context(device), solver, {problem.c_str()});
    }
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "tile_n=64 resident=2 parts=1 shared=1 raw=0",
        "tile_n=64 resident=1 parts=2 shared=0 raw=0", "tile_n=32 resident=2 parts=3 shared=0 raw=0"})
    for (const char* geometry : {"bf16 n2c72h14w14k40r3s3p1", "f16 nhwc n2c72h14w14k40r3s3p1"})
      expect_infinities_as_defined(Context(device), solver, {geometry}, std::array{Pass::forward, Pass::backward_data},
                                   tuning);
  for (const char* geometry : {"bf16 n2c20h9w8k12r3s3p1", "bf16 n1c512h4w4k64r3s3p1", "bf16 n2c64h9w8k136r3s3p1"}) {
    expect_of_scales(Context(device), solver, 0x1p70f, 0x1p70f, {.geometry = geometry});
    expect_of_scales(Context(device), solver, 0x1p66f, 0x1p61f, {.geometry = geometry});
  }
}

TEST_F(SplitGemm, IsReplayed) {
  expect_replayed(
      Context(device), solver,
      {"n2c64h9w8k72r3s3p1", "nhwc n2c64h9w8k72r3s3p1", "n1c512h4w4k64r3s3p1", "bwd_data n2c64h9w8k72r3s3p1u2",
       "bwd_filter n2c64h9w8k72r3s3p1", "nhwc n1c64h560w512k8r1s1", "bwd_filter n1c64h560w512k8r1s1"});
}

// Six products of three parts of bf16, where errors are to be relative.
const Asked relative{solver, true};
using SplitGemmOfSix = SplitGemm;

TEST_F(SplitGemmOfSix, EveryForm) {
  int number = 0;
  for (Conv2dProblem problem : listed_problems<Conv2dProblem>("tiles.txt"))
    for (const Pass pass : all_passes) {
      problem.layout = ++number % 2 == 0 ? Layout::nchw : Layout::nhwc;
      problem.type = number % 3 == 0 ? DataType::tf32 : DataType::f32;
      expect_right(with_pass(problem, pass), true);
    }
  EXPECT_GT(checked, 80);
}

TEST_F(SplitGemmOfSix, EveryTuning) {
  const Context context(device);
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=1 shared=0 raw=0", "tile_n=64 resident=1 parts=2 shared=0 raw=0",
        "tile_n=64 resident=1 parts=1 shared=0 raw=0", "tile_n=32 resident=1 parts=3 shared=0 raw=0",
        "tile_n=64 resident=1 parts=1 shared=1 raw=0", "tile_n=32 resident=1 parts=1 shared=1 raw=0"})
    for (const char* problem : {"n2c128h14w14k128r3s3p1", "bwd_data nhwc n2c128h14w14k128r3s3p1",
                                "n2c96h14w14k72r3s5p2dw2", "bwd_data n3c40h13w15k48r5s5p2",
                                "bias relu acc nhwc n2c96h14w14k40r3s5p2", "nhwc flip n4c100h9w8k12r3s3p1g2"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem),
                            {.solver = {.solver = solver, .relative_error = true, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
  for (const char* tuning :
       {"tile_n=128 resident=1 parts=4 shared=0 raw=0", "tile_n=64 resident=1 parts=3 shared=0 raw=0"})
    for (const char* problem : {"bwd_filter n4c96h14w14k72r3s3p1", "bwd_filter acc nhwc n12c40h13w15k130r5s5p2u2"})
      for (const checking::VerifyResult& result :
           checking::verify(context, parse_problem(problem),
                            {.solver = {.solver = solver, .relative_error = true, .tuning = tuning}}))
        EXPECT_EQ(result.status, checking::Status::ok) << tuning << ", " << problem << ": " << result.reason;
}

// An array of three extents, scaled along one of them by powers of two from 2^-(span / 2) to 2^(span / 2).
void scale_along(std::vector<float>& values, const std::array<std::int64_t, 3>& extents, std::size_t axis, int span) {
  const std::int64_t inner = axis == 2 ? 1 : axis == 1 ? extents[2] : extents[1] * extents[2];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) / inner % extents[axis];
    values[i] = std::ldexp(values[i], static_cast<int>(at * span / (extents[axis] - 1)) - span / 2);
  }
}

// Each operand scaled along what a result has of it, so that results are as small as the smallest terms: relative
// errors are kept, by parts up to 2^96, by multiply-adds beyond.
TEST_F(SplitGemmOfSix, KeepsRelativeErrorsWhateverTheRange) {
  for (const int span : {0, 40, 70, 90, 100, 120})
    for (const char* layout : {"nchw", "nhwc"})
      for (const Pass pass : all_passes) {
        const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} n4c20h9w8k12r3s3p1", layout)), pass);
        const Conv2dElements all = elements_of(problem);
        // Numbers of at least 2^-2, so that spans are those of the powers.
        const auto drawn = [](std::int64_t count, std::uint64_t seed) {
          std::vector<float> values = randoms(count, seed, 0.5f);
          for (float& value : values) value += value < 0 ? -0.5f : 0.5f;
          return values;
        };
        Arrays arrays{drawn(all.x, 1), drawn(all.w, 2), drawn(all.y, 3)};
        const bool nhwc = problem.layout == Layout::nhwc;
        const std::size_t channel = nhwc ? 2 : 1;
        const auto extents = [&](std::int64_t first, std::int64_t channels, std::int64_t inner) {
          return nhwc ? std::array{first, inner, channels} : std::array{first, channels, inner};
        };
        const auto of_x = extents(4, 20, 72), of_w = extents(12, 20, 9), of_y = extents(4, 12, 72);
        if (pass == Pass::backward_filter)
          scale_along(arrays.x, of_x, channel, span), scale_along(arrays.y, of_y, channel, span);
        else
          scale_along(arrays.x, of_x, 0, span), scale_along(arrays.y, of_y, 0, span),
              scale_along(arrays.w, of_w, pass == Pass::forward ? 0 : channel, span);
        for (std::vector<float>* const each : {&arrays.x, &arrays.w, &arrays.y}) (*each)[each->size() / 2] = 0;
        expect_as_defined(Context(device), relative, problem, arrays);
      }
}

TEST_F(SplitGemmOfSix, LargeAndSmall) {
  const Context context(device);
  expect_of_scales(context, relative, 0x1p100f, 0x1p-110f);
  expect_of_scales(context, relative, 0x1p-70f, 0x1p-60f);   // results below the normal range
  expect_of_scales(context, relative, 0x1p-140f, 0x1p120f);  // numbers below it
  expect_of_scales(context, relative, 0x1p-149f, 1.0f);
  expect_of_scales(context, relative, 0x1p70f, 0x1p70f);  // results beyond it
  expect_of_scales(context, relative, 0.0f, 1.0f);
  expect_of_scales(context, relative, 0.0f, 0.0f);
  expect_largest_beside_smallest(context, relative);
}

TEST_F(SplitGemmOfSix, InfinitiesAndNaN) {
  expect_infinities_as_defined(Context(device), relative,
                               {"n2c20h9w8k12r3s3p1", "nhwc n2c3h9w12k12r3s3p1u2", "n1c300h3w3k12r1s1",
                                "nhwc n2c64h9w8k64r3s3p1", "n2c3h9w12k12r4s4p1u2", "n2c64h9w8k64r1s1"});
}

// Of each product one factor with 8 bits or fewer, or both with 16: all of them are made. Each result is one product,
// of 23 bits at most.
TEST_F(SplitGemmOfSix, IntegersAreExact) {
  const Context context(device), cpu({.device = "cpu"});
  std::mt19937 random(1);
  const auto integer = [&](int bits) {
    const auto value = static_cast<float>(random() >> (32 - bits) | 1U | 1U << (bits - 1));
    return random() % 2 == 0 ? value : -value;
  };
  for (const auto& [bits, others] : {std::pair(23, 0), std::pair(22, 1), std::pair(15, 8), std::pair(12, 11)})
    for (const Pass pass : all_passes) {
      const Conv2dProblem problem = with_pass(conv2d_problem("n4c20h9w8k12r3s3p1"), pass);
      const Conv2dElements all = elements_of(problem);
      Arrays arrays;
      arrays.x.resize(static_cast<std::size_t>(all.x)), arrays.w.resize(static_cast<std::size_t>(all.w));
      arrays.y.resize(static_cast<std::size_t>(all.y));
      for (float& value : pass == Pass::backward_data ? arrays.y : arrays.x) value = integer(bits);
      // One number where a result reads the other operand.
      const auto other = [&] { return others == 0 ? 1.0f : integer(others); };
      for (std::size_t k = 0; k < 12; ++k) {
        if (pass == Pass::forward) arrays.w[k * 180 + random() % 180] = other();
        if (pass == Pass::backward_filter) arrays.y[(random() % 4 * 12 + k) * 72 + random() % 72] = other();
      }
      for (std::size_t c = 0; pass == Pass::backward_data && c < 20; ++c)
        arrays.w[(random() % 12 * 20 + c) * 9 + random() % 9] = other();
      EXPECT_EQ(made_by(context, problem, relative, arrays), made_by(cpu, problem, "conv2d/double/cpu.1", arrays))
          << to_text(problem) << ' ' << bits;
    }
}

TEST_F(SplitGemmOfSix, IsReplayed) {
  expect_replayed(Context(device), relative,
                  {"n2c64h9w8k72r3s3p1", "nhwc n2c64h9w8k72r3s3p1", "n1c512h4w4k64r3s3p1",
                   "bwd_data n2c64h9w8k72r3s3p1u2", "bwd_filter n2c64h9w8k72r3s3p1"});
}

}  // namespace
}  // namespace omniconv
