// Learning rates over the steps of a training, as PyTorch's schedulers have them at whole epochs.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "../error_testing.h"
#include "omniconv/training.h"

namespace omniconv::schedule_tests {
namespace {

// Of the begin of epoch `epoch`, counted from 0, of 10 with 4 steps each.
double rate(const std::string& text, std::int64_t epoch, std::int64_t step = 0) {
  return rate_at(parse_schedule(text), 0.5, 4 * epoch + step, 4, 10);
}

TEST(Schedules, StaysOrFalls) {
  EXPECT_EQ(rate("constant", 7), 0.5);
  EXPECT_EQ(rate("step:3,0.5", 2, 3), 0.5);
  EXPECT_EQ(rate("step:3,0.5", 3), 0.25);
  EXPECT_EQ(rate("step:3,0.5", 9), 0.0625);
  EXPECT_EQ(rate("step:0.5,0.5", 0, 2), 0.25);
  EXPECT_EQ(rate("cosine", 0), 0.5);
  EXPECT_NEAR(rate("cosine", 5), 0.25, 1e-15);
  EXPECT_NEAR(rate("cosine", 9, 3), 0.25 * (1 + std::cos(3.14159265358979324 * 39 / 40)), 1e-15);
  EXPECT_NEAR(rate("cosine:0.5", 5), 0.375, 1e-15);
}

TEST(Schedules, WarmsUp) {
  EXPECT_EQ(rate("warm-up:2", 0), 0.5 / 8);
  EXPECT_EQ(rate("warm-up:2", 1, 3), 0.5);
  EXPECT_EQ(rate("warm-up:2", 5), 0.5);
  EXPECT_EQ(rate("warm-up:2,cosine", 2), 0.5);
  EXPECT_NEAR(rate("warm-up:2,cosine", 6), 0.25, 1e-15);
  EXPECT_EQ(rate("warm-up:2,step:3,0.5", 5), 0.25);
}

TEST(Schedules, BadOnesAreRefused) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string error = error_of([&] { parse_schedule(text); }, ErrorKind::bad_input);
    EXPECT_NE(error.find("schedule '" + text + "': " + part), std::string::npos) << error;
  };
  expect("", "unknown word ''");
  expect("linear", "unknown word 'linear'");
  expect("constant:1", "'1' behind constant");
  expect("step", "'' is no number");
  expect("step:0,0.5", "'0' is no number from 1e-06");
  expect("step:2,nan", "'nan' is no number");
  expect("step:2,0.5,1", "'0.5,1' is no number");
  expect("cosine:2", "'2' is no number from 0 to 1");
  expect("warm-up:x,cosine", "'x' is no number");
}

}  // namespace
}  // namespace omniconv::schedule_tests
