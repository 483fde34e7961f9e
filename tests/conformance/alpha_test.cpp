// Premultiplied alpha on the CPU: every type, border, channel count, position of opacity and form of weights against
// the references, and what users expect of it.
#include <fmt/format.h>

#include <cmath>

#include "../error_testing.h"
#include "alpha_testing.h"
#include "cpu_testing.h"

namespace omniconv {
namespace {

class EveryTypeWithAlpha : public testing::TestWithParam<const char*> {};

TEST_P(EveryTypeWithAlpha, BordersChannelsPositionsKernels) {
  int number = 0;  // under the sanitizers every fifth, so that each border meets each kernel and position
  for (const char* border : {"constant:0", "constant:7", "replicate", "reflect", "reflect101", "wrap", "valid"})
    for (const int c : {2, 3, 4, 5})
      for (int alpha = 0; alpha < c; ++alpha)
        for (const char* kernel : {"r3s5 kernel:random", "r3s4 kernel:integer", "r3s5 kernel:rank1",
                                   "r4s3 kernel:equal", "r3s3 kernel:laplacian", "r3s3 kernel:sobel-x"})
          if (!instrumented || number++ % 5 == 0)
            expect_conformance(cpu(),
                               fmt::format("filter2d {} h8w13c{}{} {} alpha:{}", GetParam(), c, kernel, border, alpha));
}

TEST_P(EveryTypeWithAlpha, StripsBlocksAndTails) {
  for (const char* kernel : {"random", "rank1", "equal"}) {
    for (int w = 60; w < 77; ++w)
      expect_conformance(cpu(), fmt::format("filter2d {} h5w{}c4r3s3 alpha:3 kernel:{}", GetParam(), w, kernel));
    for (const char* border : {"replicate", "wrap", "valid"})
      for (const std::int64_t strip : {1, 7})
        expect_conformance(cpu(),
                           fmt::format("filter2d {} h23w31c2r5s4 {} alpha:1 kernel:{}", GetParam(), border, kernel),
                           {.strip_rows = strip});
    expect_conformance(cpu(), fmt::format("filter2d {} h9w9001c4r3s3 alpha:0 kernel:{}", GetParam(), kernel),
                       {.sampled = true});
    expect_conformance(cpu(), fmt::format("filter2d {} h3w2c3r9s11 reflect alpha:2 kernel:{}", GetParam(), kernel));
  }
}

TEST_P(EveryTypeWithAlpha, AnchorsScaleBiasFlip) {
  for (const char* kernel : {"r4s5 kernel:random", "r4s5 kernel:rank1", "r4s5 kernel:equal", "r3s3 kernel:laplacian"})
    for (const char* border : {"reflect", "valid flip", "flip"}) {
      const auto problem = filter_problem(fmt::format("filter2d {} h17w18c3{} {} alpha:1", GetParam(), kernel, border));
      Filter filter = filter_for(problem);
      filter.anchor_y = 0;
      filter.anchor_x = 2;
      filter.scale = 0.37;
      filter.bias += 11.25;
      filter.opaque_input = 200;
      filter.opaque_output = 100;
      expect_conformance(cpu(), problem, filter);
    }
}

INSTANTIATE_TEST_SUITE_P(Alpha, EveryTypeWithAlpha,
                         testing::ValuesIn(types_to_check({"u8", "u16", "s16", "s32", "f16", "f32", "f64", "u8>f32",
                                                           "u8>u16", "u16>u8", "f32>u8", "f64>u8", "s32>f64"})),
                         [](const auto& type) {
                           std::string name = type.param;
                           std::replace(name.begin(), name.end(), '>', '_');
                           return name;
                         });

TEST(Alpha, LargeResultsPastTheCaches) {
  for (const char* text : {"filter2d f32 h900w1200c4r3s3 alpha:3", "filter2d f32 h900w1201c4r3s3 alpha:3 kernel:rank1",
                           "filter2d u8>s32 h900w1201c4r3s3 alpha:3 kernel:equal",
                           "filter2d f32 h900w1201c4r3s3 alpha:0 kernel:laplacian"})
    expect_conformance(cpu(), text, {.sampled = true, .samples = 20000});
}

TEST(Alpha, MoreChannelsThanABlockHasElements) {
  expect_conformance(cpu(), "filter2d u8 h3w5c1000r3s3 alpha:999");
  expect_conformance(cpu(), "filter2d f32 h3w5c1000r3s3 alpha:0 kernel:equal");
}

// Gray and opacity; the middle pixel is transparent, and its gray must not be seen.
TEST(Alpha, TransparentPixelsGiveNoColor) {
  const auto problem = filter_problem("filter2d u8 h1w3c2r1s3 alpha:1 kernel:equal");
  const Filter mean{.weights = {1, 1, 1}};
  const std::vector<std::uint8_t> pixels = {100, 255, 200, 0, 50, 255}, other = {100, 255, 7, 0, 50, 255};
  // Windows 100 100 -, 100 - 50, - 50 50; two of three opacities each. The weights sum to 3, so that colours are three
  // times their mean, as without alpha.
  const std::vector<std::uint8_t> expected = {255, 170, 225, 170, 150, 170};
  EXPECT_EQ(run_on<std::uint8_t>(cpu(), problem, mean, pixels), expected);
  EXPECT_EQ(run_on<std::uint8_t>(cpu(), problem, mean, other), expected);
}

TEST(Alpha, WhereAllIsTransparentColorsAreTheBias) {
  const auto problem = filter_problem("filter2d u8 h1w4c2r1s3 alpha:0");
  const Filter filter{.weights = {0.25, 0.5, 0.25}, .bias = 9};
  EXPECT_EQ(run_on<std::uint8_t>(cpu(), problem, filter, {0, 50, 0, 60, 0, 70, 200, 80}),
            (std::vector<std::uint8_t>{0, 9, 0, 9, 50, 89, 150, 89}));
}

// Negative weights may turn the mean opacity to less than nothing.
TEST(Alpha, OpacityBelowZero) {
  const auto problem = filter_problem("filter2d u8 h1w3c2r1s3 alpha:1");
  const Filter sharpen{.weights = {-1, 3, -1}};
  // Mean opacities 1.608, -0.824, 1.608; sums of shares 12.157 on the left, 52.157 on the right.
  EXPECT_EQ(run_on<std::uint8_t>(cpu(), problem, sharpen, {10, 255, 20, 100, 30, 255}),
            (std::vector<std::uint8_t>{8, 255, 0, 0, 32, 255}));
}

TEST(Alpha, WeightsThatSumToZeroLeaveOpacity) {
  const auto problem = filter_problem("filter2d u8>s16 h1w4c2r1s3 alpha:1");
  const Filter difference{.weights = {-1, 0, 1}};
  EXPECT_EQ(run_on<std::int16_t>(cpu(), problem, difference, {10, 255, 30, 51, 90, 0, 91, 5}),
            (std::vector<std::int16_t>{20, 32767, 80, 6553, 61, 0, 1, 642}));
}

class Opaque : public testing::TestWithParam<const char*> {};

// To the bit: colours as without alpha, and opacity full.
TEST_P(Opaque, ImagesAreFilteredAsIfThereWereNoAlpha) {
  for (const char* kernel :
       {"r5s5 kernel:random", "r5s5 kernel:gaussian:5,1.1", "r3s3 kernel:sharpen", "r5s3 kernel:rank1",
        "r7s6 kernel:equal", "r3s4 kernel:integer", "r3s3 kernel:laplacian", "r1s5 kernel:random"})
    for (const char* border : {"reflect", "valid"})
      for (const int alpha : {0, 3}) {
        const std::string plain = fmt::format("filter2d {} h21w37c4{} {}", GetParam(), kernel, border);
        expect_opaque_as_plain(cpu(), plain, alpha);
      }
}

INSTANTIATE_TEST_SUITE_P(Alpha, Opaque, testing::Values("u8", "u16", "s16", "u8>f32", "u8>u16", "u16>u8", "u16>f16"),
                         [](const auto& type) {
                           std::string name = type.param;
                           std::replace(name.begin(), name.end(), '>', '_');
                           return name;
                         });

TEST(Alpha, OtherSolversRefuseIt) {
  const auto problem = filter_problem("filter2d u8 h30w40c4r3s3 alpha:3 kernel:sobel-x");
  std::vector<std::string> applicable;
  for (const auto& candidate : explain(cpu(), problem, filter_for(problem))) {
    if (candidate.applicable) applicable.push_back(candidate.solver);
    if (candidate.solver == "filter2d/direct/cpu.1" || candidate.solver == "filter2d/separable/cpu.1") {
      EXPECT_EQ(candidate.reason, "treats all channels alike, and channel 3 holds opacity");
    }
  }
  EXPECT_EQ(applicable, (std::vector<std::string>{"filter2d/premultiplied/cpu.1", "filter2d/definition/cpu.1"}));
  const auto plain = filter_problem("filter2d u8 h30w40c4r3s3 kernel:sobel-x");
  for (const auto& candidate : explain(cpu(), plain, filter_for(plain))) {
    if (candidate.solver != "filter2d/premultiplied/cpu.1") continue;
    EXPECT_EQ(candidate.reason, "the problem has no alpha channel: alpha:I names one");
  }
}

TEST(Alpha, RefusesAFullOpacityThatIsNoNumber) {
  const auto problem = filter_problem("filter2d u8 h3w3c2r1s1 alpha:1");
  for (const double bad : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const std::string message = error_of([&] { Filter2dPlan(cpu(), problem, {.weights = {1}, .opaque_input = bad}); });
    EXPECT_NE(message.find("full opacity of the input is"), std::string::npos) << bad << ": " << message;
  }
}

}  // namespace
}  // namespace omniconv
