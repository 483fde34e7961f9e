// The CPU device: order, errors and bounds of its queue.
#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include "../error_testing.h"
#include "devices/best_rate.h"
#include "devices/cpu/cpu_device.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

TEST(CpuQueue, RunsInOrder) {
  const Context context({.device = "cpu", .threads = 3});
  omniconv::Queue queue = context.make_queue();
  std::vector<int> seen;
  Event last;
  for (int i = 0; i < 1000; ++i) last = submit(*queue.impl(), HostTask([&seen, i] { seen.push_back(i); }));
  last.wait();
  ASSERT_EQ(seen.size(), 1000u);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], i);
}

// Whoever waits may run what has not begun, but one thing at a time, in order.
TEST(CpuQueue, RunsInOrderWhoeverWaits) {
  const Context context({.device = "cpu", .threads = 2});
  omniconv::Queue queue = context.make_queue();
  std::vector<int> seen;
  std::atomic<int> alone = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<Event> events;
    seen.clear();
    for (int i = 0; i < 8; ++i)
      events.push_back(submit(*queue.impl(), HostTask([&, i] {
        EXPECT_EQ(alone.fetch_add(1), 0);
        seen.push_back(i);
        alone.fetch_sub(1);
      })));
    std::vector<std::thread> waiting;
    for (int i = 0; i < 3; ++i)
      waiting.emplace_back([&events, i] { events[static_cast<std::size_t>(2 * i + 1)].wait(); });
    events.back().wait();
    for (std::thread& each : waiting) each.join();
    ASSERT_EQ(seen, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  }
}

// What work holds is let go of before anybody is told, and before what follows is.
TEST(CpuQueue, WorkLetsGoBeforeWhatFollowsIsDone) {
  const Context context({.device = "cpu", .threads = 1});
  omniconv::Queue queue = context.make_queue();
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> is_released = false;
    std::shared_ptr<int> held(new int(0), [&is_released](const int* number) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      delete number;
      is_released = true;
    });
    submit(*queue.impl(), HostTask([keep = std::move(held)] {}));
    Event last = submit(*queue.impl(), HostTask([] {}));
    std::thread other([&last] { last.wait(); });
    last.wait();
    EXPECT_TRUE(is_released);
    other.join();
  }
}

// Rounding is the queue's, whoever runs the work.
TEST(CpuQueue, RoundsAsItself) {
  const Context context({.device = "cpu", .threads = 1});
  omniconv::Queue queue = context.make_queue();
  std::fesetround(FE_UPWARD);
  for (int i = 0; i < 50; ++i) {
    int rounding = -1;
    submit(*queue.impl(), HostTask([&rounding] { rounding = std::fegetround(); })).wait();
    EXPECT_EQ(rounding, FE_TONEAREST);
  }
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
}

// A thread that waits need not wait for the queue's to wake up.
TEST(CpuQueue, WhoWaitsRunsWhatHasNotBegun) {
  const Context context({.device = "cpu", .threads = 1});
  omniconv::Queue queue = context.make_queue();
  int by_this_thread = 0;
  for (int i = 0; i < 500; ++i) {
    std::thread::id ran_by;
    submit(*queue.impl(), HostTask([&ran_by] { ran_by = std::this_thread::get_id(); })).wait();
    by_this_thread += ran_by == std::this_thread::get_id();
  }
  EXPECT_GT(by_this_thread, 0);  // which of them is first is the system's choice
}

// Whatever the thread that makes the queue, or lets it go, has set for itself.
TEST(CpuQueue, WorkThatNobodyWaitsForRoundsToNearest) {
  const Context context({.device = "cpu", .threads = 1});
  for (const bool begins_at_wait : {false, true}) {
    int rounding = -1;
    std::fesetround(FE_UPWARD);
    {
      omniconv::Queue queue = context.make_queue({.begins_at_wait = begins_at_wait});
      submit(*queue.impl(), HostTask([&rounding] { rounding = std::fegetround(); }));
    }
    EXPECT_EQ(std::fegetround(), FE_UPWARD);
    std::fesetround(FE_TONEAREST);
    EXPECT_EQ(rounding, FE_TONEAREST) << begins_at_wait;
  }
}

// Where work begins when somebody waits, it is the thread's that waits, in order; what nobody waits for is done when
// the queue goes, or when the ring has no room.
TEST(CpuQueue, BeginsWhenSomebodyWaits) {
  const Context context({.device = "cpu", .threads = 1});
  std::vector<int> order;
  int others = 0;
  {
    omniconv::Queue queue = context.make_queue({.begins_at_wait = true});
    const std::thread::id here = std::this_thread::get_id();
    const auto note = [&](int i) {
      return submit(*queue.impl(), HostTask([&order, &others, here, i] {
        order.push_back(i);
        others += std::this_thread::get_id() != here;
      }));
    };
    note(0);
    Event second = note(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_TRUE(order.empty());
    second.wait();
    EXPECT_EQ(order, (std::vector{0, 1}));
    for (int i = 2; i < 200; ++i) note(i);
  }
  ASSERT_EQ(order.size(), 200u);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(others, 0);
}

TEST(CpuQueue, ErrorsArriveAtWaitAndSkipWhatFollows) {
  const Context context({.device = "cpu", .threads = 1});
  omniconv::Queue queue = context.make_queue();
  bool ran = false;
  Event good = submit(*queue.impl(), HostTask([] {}));
  Event bad = submit(*queue.impl(), HostTask([] { throw environment_error("broken"); }));
  Event later = submit(*queue.impl(), HostTask([&ran] { ran = true; }));
  EXPECT_NO_THROW(good.wait());
  EXPECT_THROW(bad.wait(), Error);
  EXPECT_THROW(later.wait(), Error);
  EXPECT_THROW(queue.finish(), Error);
  EXPECT_FALSE(ran);
}

TEST(CpuQueue, ErrorsOfWorkersReachTheQueue) {
  const auto device = std::make_shared<CpuDevice>(4);
  EXPECT_THROW(device->parallel_for(100,
                                    [](std::int64_t i, int) {
                                      if (i == 57) throw environment_error("worker");
                                    }),
               Error);
}

TEST(CpuDevice, SlotsOfSimultaneousCallsDiffer) {
  const auto device = std::make_shared<CpuDevice>(4);
  std::array<std::atomic<int>, 4> busy{};
  std::atomic<int> calls{0};
  device->parallel_for(2000, [&](std::int64_t, int slot) {
    ASSERT_GE(slot, 0);
    ASSERT_LT(slot, 4);
    EXPECT_EQ(busy[static_cast<std::size_t>(slot)].fetch_add(1), 0);
    ++calls;
    busy[static_cast<std::size_t>(slot)].fetch_sub(1);
  });
  EXPECT_EQ(calls, 2000);
}

TEST(CpuDevice, RefusesWhatItIsNot) {
  EXPECT_THROW(Context({.device = "cpu:1"}), Error);
  EXPECT_THROW(Context({.device = "cpu", .threads = -1}), Error);
  EXPECT_THROW(Context({.device = "cup"}), Error);
}

TEST(CpuDevice, SizesAreAtLeastZero) {
  CpuDevice device(1);
  std::byte byte{};
  const std::string expected = "a buffer of -1 bytes: the size must be at least 0";
  EXPECT_EQ(error_of([&] { device.allocate(-1); }), expected);
  EXPECT_EQ(error_of([&] { device.borrow(&byte, -1); }), expected);
  EXPECT_EQ(error_of([&] { device.borrow(nullptr, -1); }), expected);
  EXPECT_EQ(device.allocate(0)->bytes(), 0);
  EXPECT_EQ(device.borrow(nullptr, 0)->bytes(), 0);
}

TEST(CpuDevice, CopiesFromBufferToBuffer) {
  const Context context({.device = "cpu", .threads = 2}), other({.device = "cpu", .threads = 1});
  omniconv::Queue queue = context.make_queue();
  std::vector<std::uint8_t> values((3 << 20) + 7), got(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * i >> 3);
  const auto bytes = static_cast<std::int64_t>(values.size());
  const omniconv::Buffer from = context.allocate(bytes), to = other.allocate(bytes);
  // Of another queue that is slow, so that the copy would come too soon without its event.
  omniconv::Queue source = other.make_queue();
  submit(*source.impl(), HostTask([] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }));
  const Event uploaded = source.upload(from, 0, values.data(), bytes);
  queue.copy(to, 0, from, 0, bytes, uploaded);
  queue.copy(to, 4, to, 0, 4);
  queue.download(got.data(), to, 0, bytes).wait();
  std::copy(values.begin(), values.begin() + 4, values.begin() + 4);
  EXPECT_TRUE(got == values);
  EXPECT_THROW(queue.copy(to, 3, to, 0, 4), Error);
  EXPECT_THROW(queue.copy(to, bytes, from, 0, 1), Error);
  EXPECT_THROW(queue.copy(to, 0, from, 0, bytes + 1), Error);
}

TEST(CpuDevice, MeasuresPeaks) {
  const auto device = std::make_shared<CpuDevice>(2);
  const Device::Peaks peaks = device->measure_peaks(0.3);
  EXPECT_GT(peaks.tflops, 0);
  EXPECT_GT(peaks.gbps, 0);
  // By the wall clock steps take no less, and not many times as long: a factor for what else the machine does.
  constexpr int steps = 1000;
  int number = 0;
  const auto sequence = std::make_shared<Sequence>();
  for (int i = 0; i < steps; ++i) sequence->call(HostTask([&number] { ++number; }));
  const std::shared_ptr<Queue> queue = device->make_queue({.begins_at_wait = true});
  const double rate = best_rate(0.05, [&] {
    const auto start = std::chrono::steady_clock::now();
    queue->submit(sequence).wait();
    return Done{steps, seconds_since(start)};
  });
  EXPECT_LT(peaks.launch_seconds, 4 / rate);
  EXPECT_GT(peaks.launch_seconds, 0.05 / rate);
}

TEST(BestRate, LeavesOutTheFirstAndTakesTheBest) {
  int calls = 0;
  EXPECT_EQ(best_rate(-1, [&] { return Done{++calls == 1 ? 100.0 : 8.0, 2.0}; }), 4);
  EXPECT_EQ(calls, 2);  // without time, one is counted all the same
  calls = 0;
  EXPECT_EQ(best_rate(-1, [&] { return Done{static_cast<double>(++calls), 0}; }), 0);
  calls = 0;
  const double most = best_rate(0.05, [&] { return Done{++calls == 3 ? 9.0 : 1.0, 1.0}; });
  EXPECT_GT(calls, 2);
  EXPECT_EQ(most, 9);
}

}  // namespace
}  // namespace omniconv::devices
