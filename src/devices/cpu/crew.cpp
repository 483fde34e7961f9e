#include "devices/cpu/crew.h"

#include <algorithm>
#include <cfenv>
#include <system_error>
#include <utility>

namespace omniconv::devices {
namespace {

// Some tens of microseconds: longer than what lies between two steps of a sequence, shorter than what a thread that
// sleeps costs whoever wakes it.
constexpr int looks = 1000, yields = 100;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(CPU_COUNT(&cores), 1);
  return std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
}

Crew::Crew(int threads) : most_(threads), shares_(static_cast<std::size_t>(threads)) {
  CPU_ZERO(&cores_);
  sched_getaffinity(0, sizeof cores_, &cores_);  // none where it fails, and then none is asked for
}

// What this thread is at, and within what.
struct Crew::Item {
  static thread_local const Item* innermost;

  Item(const Crew* the_crew, int the_slot) : crew(the_crew), slot(the_slot), within(std::exchange(innermost, this)) {}
  ~Item() { innermost = within; }
  Item(const Item&) = delete;
  Item& operator=(const Item&) = delete;

  static const Item* of(const Crew* crew) {
    const Item* item = innermost;
    while (item != nullptr && item->crew != crew) item = item->within;
    return item;
  }

  const Crew* const crew;
  const int slot;
  const Item* const within;
};
thread_local const Crew::Item* Crew::Item::innermost = nullptr;

Crew::~Crew() {
  is_stopping_ = true;
  state_ += 2;
  state_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::hire() {
  threads_.reserve(static_cast<std::size_t>(most_ - 1));
  try {
    for (int slot = 1; slot < most_; ++slot) threads_.emplace_back([this, slot] { wait_for_calls(slot); });
  } catch (const std::system_error&) {  // the system has no more: those that there are do the work
  }
}

void Crew::run(std::int64_t count, Body* body, const void* context) {
  if (count <= 0) return;
  if (const Item* const own = Item::of(this)) {
    for (std::int64_t i = 0; i < count; ++i) body(context, i, own->slot);
    return;
  }
  const std::lock_guard lock(calls_);
  const Item item(this, 0);
  if (count > 1 && most_ > 1 && threads_.empty()) hire();
  if (count == 1 || threads_.empty()) {
    for (std::int64_t i = 0; i < count; ++i) body(context, i, 0);
    return;
  }
  body_ = body, context_ = context;
  share_out(count);
  ++state_;
  if (sleeping_ > 0) state_.notify_all();
  work(0);
  ++state_;
  wait_for_others();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Crew::share_out(std::int64_t count) {
  const auto sharers = static_cast<int>(std::min<std::int64_t>(count, most_));
  std::int64_t next = 0;
  for (int slot = 0; slot < sharers; ++slot) {
    Share& own = shares_[static_cast<std::size_t>(slot)];
    own.next.store(next, std::memory_order_relaxed);
    own.end = next += count / sharers + (slot < count % sharers ? 1 : 0);
  }
  sharers_.store(sharers, std::memory_order_relaxed);
}

void Crew::work(int slot) {
  const int sharers = sharers_.load(std::memory_order_relaxed);
  for (int turn = 0; turn < sharers; ++turn) {
    Share& share = shares_[static_cast<std::size_t>((slot + turn) % sharers)];
    while (share.next.load(std::memory_order_relaxed) < share.end) {
      const std::int64_t item = share.next.fetch_add(1, std::memory_order_relaxed);
      if (item >= share.end) break;
      try {
        body_(context_, item, slot);
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        for (Share& any : shares_) any.next.store(any.end, std::memory_order_relaxed);
      }
    }
  }
}

// Who comes in once the state is even finds it so, and leaves without a look at the call.
void Crew::wait_for_others() const {
  for (int i = 0; inside_ != 0; ++i) i < looks ? pause() : std::this_thread::yield();
}

std::uint32_t Crew::next_state(std::uint32_t seen) {
  std::uint32_t now = seen;
  const auto has_changed = [&] { return (now = state_.load(std::memory_order_acquire)) != seen; };
  // With more threads than cores one that looks keeps another from working.
  if (most_ <= std::max(CPU_COUNT(&cores_), 1)) {
    for (int i = 0; i < looks; ++i, pause())
      if (has_changed()) return now;
    for (int i = 0; i < yields; ++i, std::this_thread::yield())
      if (has_changed()) return now;
  }
  ++sleeping_;
  while (!has_changed()) state_.wait(seen);
  --sleeping_;
  return now;
}

void Crew::wait_for_calls(int slot) {
  // Not what whoever called first has.
  std::fesetenv(FE_DFL_ENV);
  if (CPU_COUNT(&cores_) > 0) sched_setaffinity(0, sizeof cores_, &cores_);
  const Item item(this, slot);
  for (std::uint32_t state = 0;;) {
    state = next_state(state);
    if (is_stopping_) return;
    const bool is_open = state % 2 == 1;
    if (!is_open || slot >= sharers_.load(std::memory_order_relaxed)) continue;
    ++inside_;
    if (state_ == state) work(slot);
    --inside_;
  }
}

}  // namespace omniconv::devices
