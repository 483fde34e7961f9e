#include <gtest/gtest.h>

#include "omniconv/error.h"
#include "timing/stopwatch.h"

namespace omniconv::timing {
namespace {

TEST(Summary, MedianMinimumAndInterval) {
  const Summary odd = summarize({3, 1, 2});
  EXPECT_EQ(odd.median, 2);
  EXPECT_EQ(odd.minimum, 1);
  EXPECT_EQ(odd.low, 1);
  EXPECT_EQ(odd.high, 3);
  EXPECT_EQ(summarize({4, 1, 2, 3}).median, 2.5);
  std::vector<double> hundred;
  for (int i = 0; i < 100; ++i) hundred.push_back(i);
  // The ranks between which the median of a population lies with 95 %: 50 -+ 0.98 * 10, outwards.
  EXPECT_EQ(summarize(hundred).low, 40);
  EXPECT_EQ(summarize(hundred).high, 60);
  EXPECT_THROW(summarize({}), Error);
}

}  // namespace
}  // namespace omniconv::timing
