#include <gtest/gtest.h>

#include "devices/device.h"
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

// A queue whose submissions take the seconds that they are told to.
class Scripted final : public devices::Queue {
 public:
  Event submit(double seconds) {
    seconds_.push_back(seconds);
    return Event(shared_from_this(), seconds_.size() - 1);
  }
  Event upload(std::shared_ptr<devices::Buffer>, std::int64_t, const void*, std::int64_t) override { return {}; }
  Event download(void*, std::shared_ptr<devices::Buffer>, std::int64_t, std::int64_t) override { return {}; }
  Event copy(std::shared_ptr<devices::Buffer>, std::int64_t, std::shared_ptr<devices::Buffer>, std::int64_t,
             std::int64_t, const Event&) override {
    return {};
  }
  Event submit(const std::shared_ptr<const devices::Sequence>&) override { return {}; }
  Event span(Event first, Event) override { return first; }
  void finish() override {}
  void wait(std::uint64_t) override {}
  double seconds(std::uint64_t token) override { return seconds_[token]; }
  void release(std::uint64_t) noexcept override {}

 private:
  std::vector<double> seconds_;
};

// The machine slows down threefold from pair to pair; the ratio of neighbours does not see it.
TEST(Compare, RatiosArePairByPairInAlternatingOrder) {
  const auto queue = std::make_shared<Scripted>();
  std::string order;
  std::vector<int> repetitions;
  double slowness = 1;
  const auto work = [&](char name, double seconds) {
    return [&, name, seconds](int i) {
      order += name;
      repetitions.push_back(i);
      if (order.size() % 2 == 1) slowness *= 3;
      return queue->submit(seconds * slowness);
    };
  };
  const Comparison both =
      compare(work('a', 2), work('b', 5), {.budget_seconds = 0, .least_samples = 4, .most_samples = 4});
  EXPECT_EQ(order, "ababbaabba");
  EXPECT_EQ(repetitions, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(both.ratio.samples, 4);
  EXPECT_EQ(both.ratio.low, 2.5);
  EXPECT_EQ(both.ratio.high, 2.5);
  EXPECT_EQ(both.first.minimum, 18);
  EXPECT_EQ(both.second.minimum, 45);
}

TEST(Compare, NoRatioWhereTheClockIsTooCoarse) {
  const auto queue = std::make_shared<Scripted>();
  const Comparison both = compare([&](int) { return queue->submit(0); }, [&](int) { return queue->submit(1); },
                                  {.budget_seconds = 0, .least_samples = 5, .most_samples = 5});
  EXPECT_EQ(both.ratio.samples, 0);
  EXPECT_EQ(both.second.median, 1);
}

}  // namespace
}  // namespace omniconv::timing
