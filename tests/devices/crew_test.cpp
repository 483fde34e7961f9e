// The CPU's threads: each item once, whoever calls, however many there are.
#include "devices/cpu/crew.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace omniconv::devices {
namespace {

template <typename Body>
void run(Crew& crew, std::int64_t count, const Body& body) {
  crew.run(
      count, [](const void* context, std::int64_t i, int slot) { (*static_cast<const Body*>(context))(i, slot); },
      &body);
}

TEST(Crew, EachItemOnce) {
  for (const int threads : {1, 2, 3, 7, 40}) {
    Crew crew(threads);
    for (const std::int64_t count : {0, 1, 2, 3, 5, 40, 41, 1000})
      for (int again = 0; again < 20; ++again) {
        std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
        std::atomic<int> wrong_slots = 0;
        run(crew, count, [&](std::int64_t i, int slot) {
          ++times[static_cast<std::size_t>(i)];
          wrong_slots += slot < 0 || slot >= threads;
        });
        for (const std::atomic<int>& time : times) ASSERT_EQ(time, 1) << threads << " threads, " << count << " items";
        ASSERT_EQ(wrong_slots, 0);
      }
  }
}

TEST(Crew, WorksAtTheSameTimeAndAfterLongRests) {
  Crew crew(2);
  for (const int rest : {0, 5}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(rest));
    std::atomic<int> there = 0;
    run(crew, 2, [&](std::int64_t, int) {
      ++there;
      while (there < 2) std::this_thread::yield();  // each waits for the other
    });
    EXPECT_EQ(there, 2);
  }
}

// Who ends early takes what another has not begun.
TEST(Crew, NobodyWaitsForWhatIsNotBegun) {
  Crew crew(2);
  std::atomic<int> done = 0;
  run(crew, 8, [&](std::int64_t i, int) {
    if (i == 0)
      while (done < 7) std::this_thread::yield();  // items 1 to 3 are of the same thread at first
    ++done;
  });
  EXPECT_EQ(done, 8);
}

TEST(Crew, AnItemsOwnItemsAreItsThreads) {
  Crew crew(3), other(2);
  std::atomic<int> inner = 0, moved = 0;
  run(crew, 6, [&](std::int64_t, int slot) {
    const std::thread::id here = std::this_thread::get_id();
    run(crew, 5, [&](std::int64_t, int inner_slot) {
      ++inner;
      moved += inner_slot != slot || std::this_thread::get_id() != here;
    });
    run(other, 2, [&](std::int64_t, int) {});
  });
  EXPECT_EQ(inner, 30);
  EXPECT_EQ(moved, 0);
}

TEST(Crew, TheFirstErrorArrivesAndTheCrewGoesOn) {
  for (const int threads : {1, 3}) {
    Crew crew(threads);
    for (int again = 0; again < 50; ++again) {
      EXPECT_THROW(run(crew, 100,
                       [](std::int64_t i, int) {
                         if (i % 7 == 3) throw std::runtime_error("an item");
                       }),
                   std::runtime_error);
      std::atomic<int> done = 0;
      run(crew, 10, [&](std::int64_t, int) { ++done; });
      EXPECT_EQ(done, 10);
    }
  }
}

TEST(Crew, EndsWhileOthersLook) {
  for (int again = 0; again < 1000; ++again) {
    Crew crew(3);
    std::atomic<int> done = 0;
    run(crew, 3, [&](std::int64_t, int) { ++done; });
    ASSERT_EQ(done, 3);
  }
}

// Those of the crew's maker, whatever the first caller has left himself.
TEST(Crew, OthersHaveTheirMakersCores) {
  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof cores, &cores), 0);
  if (CPU_COUNT(&cores) < 2) GTEST_SKIP() << "one core is all that there is";
  Crew crew(2);
  std::atomic<int> there = 0, others = 0;
  std::thread caller([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0; CPU_COUNT(&one) == 0; ++core)
      if (CPU_ISSET(core, &cores)) CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const std::thread::id here = std::this_thread::get_id();
    run(crew, 2, [&](std::int64_t, int) {
      ++there;
      while (there < 2) std::this_thread::yield();
      cpu_set_t own;
      if (std::this_thread::get_id() != here && sched_getaffinity(0, sizeof own, &own) == 0) others = CPU_COUNT(&own);
    });
  });
  caller.join();
  EXPECT_EQ(others, CPU_COUNT(&cores));
}

TEST(Crew, ManyCallers) {
  Crew crew(3);
  std::atomic<int> done = 0, busy = 0, together = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] {
      for (int again = 0; again < 100; ++again) {
        run(crew, 9, [&](std::int64_t, int) {
          if (++busy > 3) ++together;
          ++done;
          --busy;
        });
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(done, 3600);
  EXPECT_EQ(together, 0);  // more than the crew has
}

// Not that of the caller, which threads inherit where they begin.
TEST(Crew, OthersRoundToNearest) {
  Crew crew(2);
  std::fesetround(FE_UPWARD);
  std::atomic<int> there = 0, wrong = 0;
  const std::thread::id caller = std::this_thread::get_id();
  run(crew, 2, [&](std::int64_t, int) {
    ++there;
    while (there < 2) std::this_thread::yield();
    if (std::this_thread::get_id() != caller) wrong += std::fegetround() != FE_TONEAREST;
  });
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace omniconv::devices
