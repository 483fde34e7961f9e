// Problem values: equality, output extents, and rules that no text can break.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "problem_testing.h"

namespace omniconv {
namespace {

using Limits = std::numeric_limits<std::int64_t>;

TEST(ProblemText, NamesAreNoPartOfEquality) {
  EXPECT_EQ(conv("n1c1h1w1k1r1s1 \"a\""), conv("n1c1h1w1k1r1s1 \"b\""));
  EXPECT_EQ(filter("filter2d u8 h1w1r1s1 \"a\""), filter("filter2d u8 h1w1r1s1"));
  EXPECT_EQ(gemm("gemm f32 nn m1n1k1 \"a\""), gemm("gemm f32 nn m1n1k1"));
  Filter2dProblem one = filter("filter2d u8 h1w1r1s1"), other = one;
  other.border.value = 7;  // of no meaning under replicate
  EXPECT_EQ(one, other);
  one.border.mode = other.border.mode = BorderMode::constant;
  EXPECT_NE(one, other);
}

TEST(ProblemText, EveryFieldIsPartOfEquality) {
  const std::vector<std::vector<std::string>> families{
      {"n1c4h9w9k4r2s2",
       "n2c4h9w9k4r2s2",
       "n1c8h9w9k4r2s2",
       "n1c4h8w9k4r2s2",
       "n1c4h9w8k4r2s2",
       "n1c4h9w9k8r2s2",
       "n1c4h9w9k4r3s2",
       "n1c4h9w9k4r2s3",
       "n1c4h9w9k4r2s2pt1",
       "n1c4h9w9k4r2s2pb1",
       "n1c4h9w9k4r2s2pl1",
       "n1c4h9w9k4r2s2pr1",
       "n1c4h9w9k4r2s2uh2",
       "n1c4h9w9k4r2s2uw2",
       "n1c4h9w9k4r2s2dh2",
       "n1c4h9w9k4r2s2dw2",
       "n1c4h9w9k4r2s2g2",
       "bwd_data n1c4h9w9k4r2s2",
       "bwd_filter n1c4h9w9k4r2s2",
       "f64 n1c4h9w9k4r2s2",
       "nhwc n1c4h9w9k4r2s2",
       "flip n1c4h9w9k4r2s2",
       "bias n1c4h9w9k4r2s2",
       "relu n1c4h9w9k4r2s2",
       "acc n1c4h9w9k4r2s2",
       "filter2d u8 h9w9r2s2",
       "gemm f32 nn m9n9k9"},
      {"filter2d u8 h9w9r2s2", "filter2d u16 h9w9r2s2", "filter2d u8>u16 h9w9r2s2", "filter2d u8 h8w9r2s2",
       "filter2d u8 h9w8r2s2", "filter2d u8 h9w9c2r2s2", "filter2d u8 h9w9r3s2", "filter2d u8 h9w9r2s3",
       "filter2d u8 h9w9r2s2 wrap", "filter2d u8 h9w9r2s2 constant:0", "filter2d u8 h9w9r2s2 constant:1",
       "filter2d u8 h9w9r2s2 flip", "filter2d u8 h9w9r2s2 kernel:rank1"},
      {"gemm f32 nn m9n9k9", "gemm f64 nn m9n9k9", "gemm f32 nt m9n9k9", "gemm f32 tn m9n9k9", "gemm f32 tt m9n9k9",
       "gemm f32 nn m8n9k9", "gemm f32 nn m9n8k9", "gemm f32 nn m9n9k8", "gemm f32 nn m9n9k9 batch2"}};
  for (const auto& lines : families)
    for (std::size_t i = 0; i < lines.size(); ++i)
      for (std::size_t j = 0; j < lines.size(); ++j)
        EXPECT_EQ(parse_problem(lines[i]) == parse_problem(lines[j]), i == j) << lines[i] << " and " << lines[j];
}

TEST(Validate, RefusesValuesThatNoTextCanSay) {
  const Conv2dProblem good = conv("n1c4h9w9k4r3s3");
  EXPECT_NO_THROW(validate(good));
  const auto conv_message = [&](const auto& change) {
    Conv2dProblem bad = good;
    change(bad);
    return message_of([&] { validate(bad); });
  };
  using C = Conv2dProblem;
  EXPECT_EQ(conv_message([](C& p) { p.pad_top = -1; }), "conv2d problem: pad_top is -1: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.pad_bottom = Limits::min(); }),
            "conv2d problem: pad_bottom is -9223372036854775808: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.pad_left = -2; }), "conv2d problem: pad_left is -2: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.pad_right = -2; }), "conv2d problem: pad_right is -2: must be at least 0");
  EXPECT_EQ(conv_message([](C& p) { p.h = -1; }), "conv2d problem: h is -1: must be at least 1");
  EXPECT_EQ(conv_message([](C& p) { p.dilation_w = -1; }), "conv2d problem: dilation_w is -1: must be at least 1");
  EXPECT_EQ(conv_message([](C& p) { p.groups = -1; }), "conv2d problem: groups is -1: must be at least 1");
  EXPECT_EQ(conv_message([](C& p) { p.type = DataType::u8; }),
            "conv2d problem: type is u8: must be one of f32, f64, f16, bf16, tf32");
  EXPECT_EQ(conv_message([](C& p) { p.type = static_cast<DataType>(77); }),
            "conv2d problem: type is number 77: must be one of f32, f64, f16, bf16, tf32");
  EXPECT_EQ(conv_message([](C& p) { p.pass = static_cast<Pass>(3); }),
            "conv2d problem: pass is number 3: must be forward, backward_data or backward_filter");
  EXPECT_EQ(conv_message([](C& p) { p.layout = static_cast<Layout>(2); }),
            "conv2d problem: layout is number 2: must be nchw or nhwc");

  Filter2dProblem image = filter("filter2d u8 h9w9r3s3");
  image.border = {BorderMode::constant, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(message_of([&] { validate(image); }), "filter2d problem: border value is nan: must be finite");
  image.border = {BorderMode::replicate, std::numeric_limits<double>::infinity()};
  EXPECT_NO_THROW(validate(image));
  image.border.mode = static_cast<BorderMode>(6);
  EXPECT_EQ(message_of([&] { validate(image); }),
            "filter2d problem: border is mode number 6: must be one of the six modes");
  image.border.mode = BorderMode::valid;
  image.r = -4;
  EXPECT_EQ(message_of([&] { validate(image); }), "filter2d problem: r is -4: must be at least 1");

  GemmProblem product = gemm("gemm f32 nn m1n1k1");
  product.k = 0;
  EXPECT_EQ(message_of([&] { validate(product); }), "gemm problem: k is 0: must be at least 1");
  product.k = 1;
  product.type = DataType::s32;
  EXPECT_EQ(message_of([&] { validate(product); }),
            "gemm problem: type is s32: must be one of f32, f64, f16, bf16, tf32");
}

TEST(OutputExtents, CountThePositionsOfTheFilter) {
  for (std::int64_t h = 1; h <= 6; ++h)
    for (std::int64_t r = 1; r <= 4; ++r)
      for (std::int64_t top = 0; top <= 2; ++top)
        for (std::int64_t bottom = 0; bottom <= 2; ++bottom)
          for (std::int64_t u = 1; u <= 3; ++u)
            for (std::int64_t d = 1; d <= 3; ++d) {
              std::int64_t positions = 0;
              while (positions * u + (r - 1) * d < h + top + bottom) ++positions;
              Conv2dProblem p = conv("n1c1h1w1k1r1s1");
              p.h = h, p.r = r, p.pad_top = top, p.pad_bottom = bottom, p.stride_h = u, p.dilation_h = d;
              p.w = h, p.s = r, p.pad_left = top, p.pad_right = bottom, p.stride_w = u, p.dilation_w = d;
              EXPECT_EQ(std::max<std::int64_t>(P(p), 0), positions);
              EXPECT_EQ(Q(p), P(p));
              if (positions > 0)
                EXPECT_NO_THROW(validate(p));
              else
                EXPECT_THROW(validate(p), Error);
            }
}

TEST(OutputExtents, ReadTheirOwnAxis) {
  const Conv2dProblem p = conv("n1c1h20w30k1r3s5pt1pb2pl3pr4uh2uw3dh4dw2");
  EXPECT_EQ(P(p), (20 + 1 + 2 - 4 * 2 - 1) / 2 + 1);
  EXPECT_EQ(Q(p), (30 + 3 + 4 - 2 * 4 - 1) / 3 + 1);
  const Filter2dProblem same = filter("filter2d u8 h20w30r3s5"), valid = filter("filter2d u8 h20w30r3s5 valid");
  EXPECT_EQ(P(same), 20);
  EXPECT_EQ(Q(same), 30);
  EXPECT_EQ(P(valid), 18);
  EXPECT_EQ(Q(valid), 26);
}

TEST(OutputExtents, RefuseWhatCannotBeComputed) {
  Conv2dProblem p = conv("n1c1h9w9k1r1s1");
  p.stride_w = 0;
  EXPECT_EQ(message_of([&] { P(p); }), "conv2d problem: stride_w is 0: must be at least 1");
  p.stride_w = 1;
  p.pad_left = Limits::max();
  EXPECT_EQ(message_of([&] { Q(p); }), "w with its padding is too large: 9 plus 9223372036854775807 passes 2^63");
  EXPECT_EQ(P(p), 9);
  p = conv("n1c1h9w9k1r1s1");
  p.r = Limits::max();
  EXPECT_EQ(P(p), 9 - Limits::max() + 1);
  p.dilation_h = 2;
  EXPECT_THROW(P(p), Error);
  Filter2dProblem image = filter("filter2d u8 h9w9r3s3 valid");
  image.h = Limits::min();
  EXPECT_THROW(P(image), Error);
  image.h = 1, image.r = Limits::max();
  EXPECT_EQ(P(image), 2 - Limits::max());
}

}  // namespace
}  // namespace omniconv
