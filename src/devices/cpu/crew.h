// Threads that share out items: those of one call after the other.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace omniconv::devices {

// Cores that this process may use.
int usable_cores();

class Crew {
 public:
  using Body = void(const void* context, std::int64_t item, int slot);

  // So many threads, of which the caller's is one; the others begin with the first call that has items for them, on the
  // cores that are the maker's.
  explicit Crew(int threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Calls body(context, i, slot) for every i in [0, count), items that run at the same time with different slots in
  // [0, threads). Each thread has neighbouring items, the same ones in each call of so many, since its caches have what
  // it read and wrote of them before; then it takes what others have left. Returns when all are done; the first
  // exception is rethrown, and what has not begun by then never does. Several callers go one after the other; an item's
  // own calls are done by its thread alone. Items of two crews that call each other's crew may wait for ever.
  void run(std::int64_t count, Body* body, const void* context);

 private:
  struct Item;

  static constexpr std::size_t line = 64;  // of a cache: what different threads change lies apart

  // Of a thread: items [next, end) that nobody has taken.
  struct alignas(line) Share {
    std::atomic<std::int64_t> next = 0;
    std::int64_t end = 0;
  };

  void hire();
  void share_out(std::int64_t count);
  void work(int slot);  // items of the call at hand, until all are taken
  void wait_for_calls(int slot);
  std::uint32_t next_state(std::uint32_t seen);
  void wait_for_others() const;

  const int most_;
  cpu_set_t cores_;
  std::mutex calls_;  // held by the caller whose items are shared out
  std::vector<std::thread> threads_;

  // The call at hand. It changes while nobody is inside, and nobody comes in while the state is even.
  std::vector<Share> shares_;
  Body* body_ = nullptr;
  const void* context_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_mutex_;
  std::atomic<bool> is_stopping_ = false;

  alignas(line) std::atomic<std::uint32_t> state_ = 0;  // odd: the call with that number is open
  std::atomic<int> sharers_ = 0, sleeping_ = 0;         // slots that have a share
  alignas(line) std::atomic<int> inside_ = 0;
};

}  // namespace omniconv::devices
