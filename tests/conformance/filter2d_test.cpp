// Every CPU solver x type x border x channels x kernel form, and the project's problem list.
#include <fmt/format.h>

#include "cpu_testing.h"

namespace omniconv {
namespace {

const char* const kernels[] = {"random", "integer", "rank1", "equal"};

class EveryType : public testing::TestWithParam<const char*> {};

TEST_P(EveryType, BordersChannelsKernels) {
  for (const char* border : borders)
    for (const int c : {1, 2, 3, 4, 5})
      for (const char* kernel : kernels)
        expect_conformance(cpu(), fmt::format("filter2d {} h19w23c{}r3s5 {} kernel:{}", GetParam(), c, border, kernel));
}

TEST_P(EveryType, OddAndEvenSizes) {
  for (const int r : {1, 2, 3, 4, 6, 9})
    for (const int s : {1, 2, 5, 8})
      for (const char* kernel : {"random", "rank1", "equal"}) {
        if (std::string_view(kernel) == "rank1" && (r < 2 || s < 2))
          continue;  // a single row or column has no two factors
        expect_conformance(cpu(),
                           fmt::format("filter2d {} h21w40c3r{}s{} reflect101 kernel:{}", GetParam(), r, s, kernel));
      }
}

TEST_P(EveryType, MasksLargerThanTheImage) {
  for (const char* border : borders) {
    if (std::string_view(border) == "valid") continue;  // no whole window, refused by the problem
    for (const char* size : {"h1w1", "h1w7", "h3w2", "h5w4"})
      for (const char* kernel : {"random", "rank1"})
        expect_conformance(cpu(), fmt::format("filter2d {} {}c2r9s11 {} kernel:{}", GetParam(), size, border, kernel));
  }
}

TEST_P(EveryType, AnchorsScaleBiasFlip) {
  auto problem = get<Filter2dProblem>(parse_problem(fmt::format("filter2d {} h17w18c3r4s5 reflect", GetParam())));
  for (const bool flip : {false, true})
    for (const std::int64_t y : {0, 1, 3})
      for (const std::int64_t x : {0, 2, 4}) {
        problem.flip = flip;
        Filter filter = filter_for(problem);
        filter.anchor_y = y;
        filter.anchor_x = x;
        filter.scale = 0.37;
        filter.bias += 11.25;
        expect_conformance(cpu(), problem, filter);
      }
}

// Wide rows: vector bodies, tails of every length, blocks and edge blocks.
TEST_P(EveryType, WideRows) {
  for (int w = 200; w < 233; ++w)
    for (const char* kernel : {"random", "rank1"})
      expect_conformance(cpu(), fmt::format("filter2d {} h5w{}c1r3s3 kernel:{}", GetParam(), w, kernel));
  for (const char* border : borders)
    expect_conformance(cpu(), fmt::format("filter2d {} h9w9001c3r3s3 {}", GetParam(), border), {.sampled = true});
}

INSTANTIATE_TEST_SUITE_P(Filter2d, EveryType,
                         testing::ValuesIn(types_to_check({"u8", "u16", "s16", "s32", "f16", "f32", "f64", "u8>f32",
                                                           "u8>s16", "u16>u8", "f32>u8", "u8>u16", "f16>f32", "f32>f16",
                                                           "s16>f64", "f32>f64", "f64>u8", "f64>f16", "u8>s32"})),
                         [](const auto& type) {
                           std::string name = type.param;
                           std::replace(name.begin(), name.end(), '>', '_');
                           return name;
                         });

TEST(Filter2d, ProblemList) {
  for (const Filter2dProblem& problem : shrunk_problems()) expect_conformance(cpu(), problem, filter_for(problem));
}

TEST(Filter2d, NamedKernels) {
  for (const char* kernel : {"r5s5 kernel:gaussian:5,1.1", "r9s9 kernel:gaussian:9", "r7s7 kernel:box:7",
                             "r9s9 kernel:log:9,1.4", "r5s5 kernel:unsharp:5,1,0.7", "r5s7 kernel:motion:7,30"})
    for (const char* type : {"u8", "u16", "f32"})
      expect_conformance(cpu(), fmt::format("filter2d {} h31w47c3{}", type, kernel));
  for (const char* kernel : {"sobel-x", "sobel-y", "prewitt-x", "scharr-x", "laplacian", "sharpen", "emboss"})
    for (const char* type : {"u8", "u8>s16", "f32"})
      expect_conformance(cpu(), fmt::format("filter2d {} h31w47c3r3s3 kernel:{}", type, kernel));
}

// Kernels and channels whose reach passes a block of columns.
TEST(Filter2d, WideReach) {
  for (const char* text : {"filter2d f32 h2w2000c3r3s201", "filter2d f32 h2w800c3r201s201 kernel:gaussian:201",
                           "filter2d f64 h2w300c30r31s31", "filter2d u8 h3w700c30r2s61 wrap",
                           "filter2d f32 h3w9000c1r3s1001 kernel:rank1", "filter2d f32 h2w40c1000r3s3"})
    expect_conformance(cpu(), text, {.sampled = true, .samples = samples(2000)});
}

// So many channels that the taps of a block share no element.
TEST(Filter2d, ManyChannels) {
  for (const char* border : {"constant:7", "reflect101", "wrap", "valid"})
    for (const char* text : {"filter2d u8 h6w5c20001r3s3", "filter2d f32 h4w4c20001r3s4 kernel:rank1",
                             "filter2d u16 h3w9c7001r3s3 kernel:equal", "filter2d f64 h3w3c20001r1s3"})
      expect_conformance(cpu(), fmt::format("{} {}", text, border), {.sampled = true, .samples = samples(3000)});
  // In place but for the edges, if the taps were not apart.
  expect_conformance(cpu(), "filter2d f32 h3w100c9001r3s2", {.sampled = true, .samples = samples(3000)});
  expect_conformance(cpu(), "filter2d f32 h3w100c9001r3s1", {.sampled = true, .samples = samples(3000)});
}

// Results of 16 MiB and more are written past the caches: rows that begin on cache lines and rows that do not.
TEST(Filter2d, LargeResults) {
  for (const char* text : {"filter2d f32 h900w1600c3r3s3", "filter2d f32 h900w1601c3r3s3 wrap",
                           "filter2d u8>f32 h900w1601c3r3s3 kernel:rank1", "filter2d f64 h700w1001c3r3s3",
                           "filter2d u8>s32 h900w1601c3r3s3 valid"})
    expect_conformance(cpu(), text, {.sampled = true, .samples = samples(20000)});
}

// Sums of equal weights that fp32 chains cannot hold: u16 beyond 2^8 taps.
TEST(Filter2d, WideIntegerSums) {
  expect_conformance(cpu(), "filter2d u16 h40w50c1r17s16 kernel:equal");
  expect_conformance(cpu(), "filter2d u16>f32 h40w50c2r33s31 wrap kernel:equal");
}

// Dyadic rank-one weights are exact in any order: direct and separable must both serve, with the same bits.
TEST(Filter2d, ExactRankOneIsServedByBoth) {
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d u8 h30w40c3r3s3 kernel:sobel-x"));
  int served = 0;
  for (const auto& candidate : explain(cpu(), problem, filter_for(problem))) served += candidate.applicable;
  EXPECT_GE(served, 3);  // separable, direct, definition; dot products where the processor has them
}

}  // namespace
}  // namespace omniconv
