// What follows from the weights alone: rounding, form, exactness.
#include "operations/filter2d/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "omniconv/error.h"

namespace omniconv {
namespace {

Weights of(std::string_view text, std::vector<double> weights, double scale = 1, double bias = 0) {
  return analyse(get<Filter2dProblem>(parse_problem(text)),
                 {.weights = std::move(weights), .scale = scale, .bias = bias});
}

TEST(Weights, EverythingIsRoundedToFp32) {
  const Weights weights = of("filter2d u8 h8w8r1s2", {0.1, 0.7}, 0.1, 0.3);
  EXPECT_EQ(weights.values[0], static_cast<double>(0.1f));
  EXPECT_EQ(weights.values[1], static_cast<double>(0.7f));
  EXPECT_EQ(weights.scale, static_cast<double>(0.1f));
  EXPECT_EQ(weights.bias, static_cast<double>(0.3f));
  EXPECT_THROW(of("filter2d u8 h8w8r1s2", {1, 2}, 1e39), Error);
  EXPECT_THROW(of("filter2d u8 h8w8r1s2", {1, 2}, 1, -1e39), Error);
  const Weights wide = of("filter2d f64 h8w8r1s2", {0.1, 0.7}, 0.1, 1e39);
  EXPECT_EQ(wide.values[0], 0.1);
  EXPECT_EQ(wide.scale, 0.1);
  EXPECT_EQ(wide.bias, 1e39);
}

TEST(Weights, Forms) {
  EXPECT_EQ(of("filter2d u8 h8w8r2s2", {2, 2, 2, 2}).form, WeightForm::equal);
  EXPECT_EQ(of("filter2d f32 h8w8r2s2", {2, 2, 2, 2}).form, WeightForm::rank_one);  // only a bound is promised
  EXPECT_EQ(of("filter2d u8 h8w8r2s2", {1, 2, 2, 4}).form, WeightForm::rank_one);
  EXPECT_EQ(of("filter2d u8 h8w8r2s2", {1, 2, 2, 5}).form, WeightForm::general);
  EXPECT_EQ(of("filter2d u8 h8w8r1s3", {1, 2, 4}).form, WeightForm::general);  // one row has no two factors
}

TEST(Weights, PairsAreAnalysedEachByItsOwnForm) {
  const auto problem = get<Filter2dProblem>(parse_problem("filter2d u8 h8w8r2s2 flip"));
  EXPECT_FALSE(task_for(problem, {.weights = {1, 2, 2, 4}}).second);
  const Filter2dTask task = task_for(problem, {.weights = {1, 2, 2, 4}, .second_weights = {1, 2, 2, 5}});
  EXPECT_EQ(task.weights.form, WeightForm::rank_one);
  EXPECT_EQ(task.second->form, WeightForm::general);
  EXPECT_EQ(task.second->values, (std::vector<double>{5, 2, 2, 1}));  // turned, as the first is
  EXPECT_EQ(task.second->anchor_y, task.weights.anchor_y);
}

TEST(Weights, LargestSumTakesTheWorstPixels) {
  EXPECT_EQ(largest_sum(of("filter2d u8 h8w8r1s3", {1, -5, 2}), DataType::u8), 5 * 255);
  EXPECT_EQ(largest_sum(of("filter2d s16 h8w8r1s2", {1, -1}), DataType::s16), 65535);
}

// The pivot is the first of the largest magnitude; its row is kept, its column divided by it.
TEST(Weights, FactorsOfSobel) {
  const Weights sobel = of("filter2d u8 h8w8r3s3", {-1, 0, 1, -2, 0, 2, -1, 0, 1});
  EXPECT_EQ(sobel.form, WeightForm::rank_one);
  EXPECT_EQ(sobel.row, (std::vector<double>{-2, 0, 2}));
  EXPECT_EQ(sobel.column, (std::vector<double>{0.5, 1, 0.5}));
  EXPECT_TRUE(sobel.exact);
}

// 2 ulp: the product 3 * (1/3 rounded) stays within, the next-but-two neighbour of a weight does not.
TEST(Weights, RankOneToleratesTwoUlp) {
  const float ulp = std::nextafterf(2, 3) - 2;
  EXPECT_EQ(of("filter2d u8 h8w8r2s2", {4, 2, 4, 2 + 2.0 * ulp}).form, WeightForm::rank_one);
  EXPECT_EQ(of("filter2d u8 h8w8r2s2", {4, 2, 4, 2 + 3.0 * ulp}).form, WeightForm::general);
}

TEST(Weights, Exactness) {
  EXPECT_TRUE(of("filter2d u8 h8w8r1s2", {0.5, -3}).exact);
  EXPECT_FALSE(of("filter2d u8 h8w8r1s2", {0.1, -3}).exact);   // 0.1 in fp32 has 24 digits
  EXPECT_TRUE(of("filter2d u8 h8w8r1s2", {65792, 1}).exact);   // 65793 * 255 = 2^24 - 1
  EXPECT_FALSE(of("filter2d u8 h8w8r1s2", {65793, 1}).exact);  // 2^24 + 254
  EXPECT_TRUE(of("filter2d u16 h8w8r1s2", {128, 128}).exact);
  EXPECT_FALSE(of("filter2d f32 h8w8r1s2", {1, 1}).exact);
  EXPECT_FALSE(of("filter2d s32 h8w8r1s2", {1, 1}).exact);
  // Multiples of one unit, but large enough to overflow in one order of addition and not in another.
  EXPECT_FALSE(of("filter2d u8>f32 h8w8r2s2", {0x1p126, 0x1p126, -0x1p126, -0x1p126}).exact);
}

TEST(Weights, FlipMirrorsWeightsAndAnchor) {
  const Weights weights = of("filter2d u8 h8w8r1s4 flip", {1, 2, 3, 5});
  EXPECT_EQ(weights.values, (std::vector<double>{5, 3, 2, 1}));
  EXPECT_EQ(weights.anchor_x, 1);
  EXPECT_EQ(of("filter2d u8 h8w8r1s4 valid", {1, 2, 3, 5}).anchor_x, 0);
}

TEST(Weights, ConstantsAreRoundedAndSaturated) {
  EXPECT_EQ(of("filter2d u8 h8w8r1s2 constant:300", {1, 2}).border_value, 255);
  EXPECT_EQ(of("filter2d u8 h8w8r1s2 constant:2.5", {1, 2}).border_value, 2);
  EXPECT_EQ(of("filter2d s16 h8w8r1s2 constant:-2.5", {1, 2}).border_value, -2);
  EXPECT_EQ(of("filter2d f32 h8w8r1s2 constant:0.1", {1, 2}).border_value, static_cast<double>(0.1f));
}

// Premultiplied where the weights sum to more than rounding can account for.
TEST(Weights, TheSumDecidesWhatBecomesOfAlpha) {
  const auto rule = [](const char* type, std::vector<double> weights) {
    const std::string text = std::string("filter2d ") + type + " h8w8c2r1s3 alpha:1";
    return of(text, std::move(weights)).alpha_rule;
  };
  for (const char* type : {"u8", "f32", "f64"}) {
    EXPECT_EQ(rule(type, {0.25, 0.5, 0.25}), AlphaRule::premultiplied);
    EXPECT_EQ(rule(type, {-1, 3, -1}), AlphaRule::premultiplied);
    EXPECT_EQ(rule(type, {-1, 0, 1}), AlphaRule::copied);
    EXPECT_EQ(rule(type, {-1, 0, 0.5}), AlphaRule::copied);
    EXPECT_EQ(rule(type, {0.1, -0.3, 0.2}), AlphaRule::copied);  // some 1e-8 of rounding is left
    EXPECT_EQ(rule(type, {-1, 2.001, -1}), AlphaRule::premultiplied);
    EXPECT_EQ(rule(type, {-1, 2.0009, -1}), AlphaRule::copied);  // below 2^-12 of 4.0009
  }
  EXPECT_EQ(of("filter2d u8 h8w8c2r1s3", {1, 2, 1}).alpha_rule, AlphaRule::none);
  EXPECT_FALSE(of("filter2d u8 h8w8c2r1s3 alpha:1", {1, 2, 1}).exact);
  EXPECT_TRUE(of("filter2d u8 h8w8c2r1s3 alpha:1", {-1, 0, 1}).exact);
  EXPECT_EQ(of("filter2d u8 h8w8c2r1s3 alpha:1", {1, 2, 1}).opaque_sum, 4);
  EXPECT_EQ(of("filter2d u8 h8w8c2r2s2 alpha:1", {3, 3, 3, 3}).opaque_sum, 12);
  EXPECT_EQ(of("filter2d u8 h8w8c2r2s2 alpha:1", {1, 2, 3, 6}).opaque_sum, 12);
}

// White is a fraction of exactly 1 in every type, so that opaque pixels keep their colours to the bit.
TEST(Weights, FullOpacityIsOne) {
  for (const DataType type :
       {DataType::u8, DataType::u16, DataType::s16, DataType::s32, DataType::f16, DataType::f32}) {
    const std::string text = "filter2d " + std::string(name(type)) + " h8w8c2r1s1 alpha:1";
    const Weights weights = of(text, {1});
    const auto white = static_cast<float>(is_integer(type) ? highest_value(type) : 1);
    EXPECT_EQ(white * static_cast<float>(weights.opacity_unit), 1.0f) << name(type);
  }
}

}  // namespace
}  // namespace omniconv
