// What the queues of every kind of device share: a ring of what is under way, tokens, the first error, and sequences
// that are used again.
//
// Submissions are numbered from 1. A token stands for one, or for a span of them, in a slot that is used again. Times,
// which each kind says for itself, tell when a submission begins and ends; the ring and the slots share them. Once all
// this is as large as it gets, submitting allocates nothing.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "devices/device.h"
#include "devices/sequence_pool.h"
#include "omniconv/error.h"

namespace omniconv::devices {

template <typename Times>
class RingQueue : public Queue {
 public:
  std::shared_ptr<Sequence> take_sequence() final { return sequences_->take(); }
  Event submit(const std::shared_ptr<const Sequence>& sequence) final;
  Event replay(const std::shared_ptr<const Recording>& recording) final;
  Event span(Event first, Event last) final;
  void finish() final;
  void wait(std::uint64_t token) final;
  double seconds(std::uint64_t token) final;
  double seconds_after(std::uint64_t token, Queue& other, std::uint64_t other_token) final;
  void release(std::uint64_t token) noexcept final;

 protected:
  static constexpr std::uint64_t capacity = 64;  // submissions under way; the next one waits for the oldest

  // What is kept alive until a submission is done.
  struct Held {
    std::shared_ptr<const Sequence> sequence;
    std::array<std::shared_ptr<const void>, 2> also;
  };
  struct Timer {
    Times times{};
    int users = 0;
    Timer* next_free = nullptr;
  };
  // A submission that may still run.
  struct Pending {
    std::uint64_t number = 0;
    const char* what = nullptr;  // for errors, a literal; null: the sequence
    Timer* timer = nullptr;
    Held held;
  };

  // `error_prefix` stands before every error of its work.
  RingQueue(std::string device_id, std::string error_prefix, bool is_timed)
      : device_id_(std::move(device_id)), is_timed_(is_timed), error_prefix_(std::move(error_prefix)) {
    slots_.reserve(most_kept);
    for (int i = 0; i < most_kept; ++i) add_timer();
  }

  // One submission: calls `enqueue` between begin() and end(). An error of theirs becomes the queue's.
  template <typename Enqueue>
  Event add(const char* what, Held held, const Enqueue& enqueue);
  // Without the mutex meanwhile: what is held may be anything of the caller's.
  void let_go(Held held, std::unique_lock<std::mutex>& lock);
  // Keeps the error of the earliest submission. The mutex is held.
  void fail(std::uint64_t number, std::exception_ptr error);
  // Those of the last submission that a token stands for, as long as its event is held.
  const Times& end_of(std::uint64_t token) const;

  const std::string device_id_;
  const bool is_timed_;
  mutable std::mutex mutex_;  // guards what follows, and is held in begin(), enqueue(), end() and is_done()
  std::array<Pending, capacity> ring_;
  std::uint64_t pushed_ = 0, swept_ = 0;  // positions in the ring, modulo its capacity
  std::deque<Timer> timers_;
  std::exception_ptr failure_;

 private:
  static constexpr int most_kept = capacity + capacity / 4;  // to be used again

  // What a token, its index + 1, stands for: submission `number`, and the time from the start of `first` to the end of
  // `last`, null where the queue had failed before.
  struct Slot {
    std::uint64_t number = 0;  // 0: free
    Timer *first = nullptr, *last = nullptr;
    std::size_t next_free = 0;
  };

  // What each kind of queue says. Around calls of the others: makes its device current to this thread.
  virtual void enter() {}
  virtual void leave() noexcept {}
  // As of its device's buffers, programs and recordings.
  virtual const void* context() const = 0;
  // Throws bad_input where a step cannot be this queue's, and waits for what its programs lack; without the mutex.
  virtual void prepare(const Sequence& sequence) const = 0;
  virtual void begin(Times& times) = 0;
  virtual void enqueue(const Sequence& sequence, Times& times) = 0;
  virtual void enqueue_recording(const Recording& recording, Times& times) { enqueue(*recording.sequence(), times); }
  virtual void end(Times& times) = 0;
  virtual void pushed() {}  // without the mutex
  // Throws the error that the work ended with.
  virtual bool is_done(const Times& times) const = 0;
  // Returns when it is; without the mutex.
  virtual void await(const Times& times) = 0;
  // The error of work shows in all later work too, so that one answer tells of all before.
  virtual bool errors_stay() const { return false; }
  // Nobody asks for the times any more.
  virtual void forget(Times&) noexcept {}
  // From the start of `first` to the end of `last`; from the end of one to that of another, 0 where it was earlier.
  virtual double seconds_of(const Times& first, const Times& last) const = 0;
  virtual double seconds_between_ends(const Times& earlier, const Times& later) const = 0;
  // Of another queue of this kind: its times are of one clock with these.
  virtual bool shares_clock(const RingQueue& other) const = 0;

  struct Entered {
    explicit Entered(RingQueue& the_queue) : queue(the_queue) { queue.enter(); }
    ~Entered() { queue.leave(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    RingQueue& queue;
  };

  void make_room(std::unique_lock<std::mutex>& lock);
  // Returns when submission `number` and all before it are done; notes their first error.
  void wait_for(std::uint64_t number, std::unique_lock<std::mutex>& lock);
  void throw_failure_up_to(std::uint64_t number) const;
  // Drops what has ended from the front of the ring, and takes note of errors.
  void sweep(std::unique_lock<std::mutex>& lock);
  bool ended(std::uint64_t position);
  void drop_until(std::uint64_t position, std::unique_lock<std::mutex>& lock);
  void add_timer();
  Timer* take_timer();
  void drop(Timer* timer) noexcept;
  // Makes sure that take_slot, which cannot fail, finds one.
  void reserve_slot();
  // Becomes a user of both timers.
  Event take_slot(std::uint64_t number, Timer* first, Timer* last) noexcept;
  const Slot& slot(std::uint64_t token) const;
  void check_timed() const;

  const std::string error_prefix_;
  std::uint64_t submitted_ = 0;
  Timer* free_timer_ = nullptr;
  std::vector<Slot> slots_;
  std::size_t first_free_ = 0;  // slots_.size(): none
  std::uint64_t failure_number_ = 0;
  const std::shared_ptr<SequencePool> sequences_ = std::make_shared<SequencePool>(most_kept);
};

template <typename Times>
Event RingQueue<Times>::submit(const std::shared_ptr<const Sequence>& sequence) {
  if (!sequence || sequence->is_empty())
    throw bad_input(fmt::format("an empty sequence was submitted to a queue of {}: append a step to it", device_id_));
  prepare(*sequence);
  return add(nullptr, {sequence, {}}, [&](Times& times) { this->enqueue(*sequence, times); });
}

template <typename Times>
Event RingQueue<Times>::replay(const std::shared_ptr<const Recording>& recording) {
  check_replay(*recording, device_id_, context());
  return add(nullptr, {recording->sequence(), {recording}},
             [&](Times& times) { this->enqueue_recording(*recording, times); });
}

template <typename Times>
template <typename Enqueue>
Event RingQueue<Times>::add(const char* what, Held held, const Enqueue& enqueue) {
  std::unique_lock lock(mutex_);
  const Entered entered(*this);
  make_room(lock);
  reserve_slot();
  const std::uint64_t number = ++submitted_;
  if (failure_) return take_slot(number, nullptr, nullptr);
  Timer* const timer = take_timer();
  try {
    begin(timer->times);
    enqueue(timer->times);
  } catch (...) {
    fail(number, std::current_exception());
  }
  try {
    end(timer->times);  // of work that failed in its midst too: some of it may run, and is waited for
  } catch (...) {
    fail(number, std::current_exception());
    drop(timer);
    return take_slot(number, nullptr, nullptr);
  }
  Pending& newest = ring_[pushed_++ % capacity];
  newest.number = number;
  newest.what = what;
  newest.timer = timer;  // its first user
  newest.held = std::move(held);
  Event event = take_slot(number, timer, timer);
  lock.unlock();
  pushed();
  return event;
}

// What has ended is let go of from time to time, since asking costs about as much as submitting.
template <typename Times>
void RingQueue<Times>::make_room(std::unique_lock<std::mutex>& lock) {
  constexpr std::uint64_t often = 8;
  if (pushed_ % often == 0 || pushed_ - swept_ == capacity) sweep(lock);
  while (!failure_ && pushed_ - swept_ == capacity) wait_for(ring_[swept_ % capacity].number, lock);
}

template <typename Times>
void RingQueue<Times>::wait_for(std::uint64_t number, std::unique_lock<std::mutex>& lock) {
  // The last in the ring that is not later.
  std::uint64_t behind = pushed_;
  while (behind > swept_ && ring_[(behind - 1) % capacity].number > number) --behind;
  if (behind == swept_) return;
  Timer* const awaited = ring_[(behind - 1) % capacity].timer;
  ++awaited->users;
  lock.unlock();
  std::exception_ptr error;
  try {
    await(awaited->times);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  drop(awaited);
  if (!error && errors_stay())
    drop_until(behind, lock);
  else
    sweep(lock);
  if (error) fail(number, error);
}

template <typename Times>
void RingQueue<Times>::sweep(std::unique_lock<std::mutex>& lock) {
  if (errors_stay() && !failure_) {
    for (std::uint64_t count = pushed_ - swept_; count > 1; count /= 2)
      if (ended(swept_ + count - 1)) return drop_until(swept_ + count, lock);
  }
  while (swept_ < pushed_ && ended(swept_)) drop_until(swept_ + 1, lock);
}

// An error counts only of the oldest: it may be that of work before.
template <typename Times>
bool RingQueue<Times>::ended(std::uint64_t position) {
  const Pending& asked = ring_[position % capacity];
  try {
    return is_done(asked.timer->times);
  } catch (const Error& error) {
    if (position > swept_) return false;
    const std::string what = asked.what ? asked.what : describe(*asked.held.sequence);
    fail(asked.number,
         std::make_exception_ptr(Error(error.kind(), fmt::format("{} failed on the device: {}", what, error.what()))));
    return true;
  }
}

template <typename Times>
void RingQueue<Times>::drop_until(std::uint64_t position, std::unique_lock<std::mutex>& lock) {
  while (swept_ < position) {
    Pending& oldest = ring_[swept_++ % capacity];
    drop(std::exchange(oldest.timer, nullptr));
    let_go(std::exchange(oldest.held, {}), lock);
  }
}

template <typename Times>
void RingQueue<Times>::let_go(Held held, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  held = Held();
  lock.lock();
}

template <typename Times>
void RingQueue<Times>::fail(std::uint64_t number, std::exception_ptr error) {
  if (failure_ && failure_number_ <= number) return;
  failure_number_ = number;
  try {
    std::rethrow_exception(error);
  } catch (const Error& said) {
    failure_ = error_prefix_.empty() ? error : std::make_exception_ptr(Error(said.kind(), error_prefix_ + said.what()));
  } catch (...) {
    failure_ = error;
  }
}

template <typename Times>
void RingQueue<Times>::throw_failure_up_to(std::uint64_t number) const {
  if (failure_ && failure_number_ <= number) std::rethrow_exception(failure_);
}

template <typename Times>
Event RingQueue<Times>::span(Event first, Event last) {
  if (first.queue().get() != this || last.queue().get() != this)
    throw bad_input("a span of events needs two events of this queue");
  const std::lock_guard lock(mutex_);
  reserve_slot();
  const Slot &from = slot(first.token()), &to = slot(last.token());
  return take_slot(to.number, from.first, to.last);
}

template <typename Times>
void RingQueue<Times>::finish() {
  std::unique_lock lock(mutex_);
  const Entered entered(*this);
  const std::uint64_t number = submitted_;
  wait_for(number, lock);
  throw_failure_up_to(number);
}

template <typename Times>
void RingQueue<Times>::wait(std::uint64_t token) {
  std::unique_lock lock(mutex_);
  const Entered entered(*this);
  const std::uint64_t number = slot(token).number;
  wait_for(number, lock);
  throw_failure_up_to(number);
}

template <typename Times>
double RingQueue<Times>::seconds(std::uint64_t token) {
  check_timed();
  const std::lock_guard lock(mutex_);
  const Entered entered(*this);
  const Slot& asked = slot(token);
  throw_failure_up_to(asked.number);
  return seconds_of(asked.first->times, asked.last->times);
}

template <typename Times>
double RingQueue<Times>::seconds_after(std::uint64_t token, Queue& other, std::uint64_t other_token) {
  const double all = seconds(token);
  const auto* const others = dynamic_cast<const RingQueue*>(&other);
  if (!others || !shares_clock(*others)) return all;
  others->check_timed();
  const Entered entered(*this);
  return std::min(all, seconds_between_ends(others->end_of(other_token), end_of(token)));
}

template <typename Times>
void RingQueue<Times>::check_timed() const {
  if (!is_timed_)
    throw bad_input(fmt::format(
        "the event has no times: its queue of {} was made without; make it with QueueOptions{{.timing = true}}",
        device_id_));
}

template <typename Times>
const Times& RingQueue<Times>::end_of(std::uint64_t token) const {
  const std::lock_guard lock(mutex_);
  const Slot& asked = slot(token);
  throw_failure_up_to(asked.number);
  return asked.last->times;
}

template <typename Times>
void RingQueue<Times>::release(std::uint64_t token) noexcept {
  const std::lock_guard lock(mutex_);
  const std::size_t index = token - 1;
  drop(slots_[index].first);
  drop(slots_[index].last);
  slots_[index] = Slot();
  slots_[index].next_free = first_free_;
  first_free_ = index;
}

template <typename Times>
void RingQueue<Times>::add_timer() {
  Timer& added = timers_.emplace_back();
  added.next_free = free_timer_;
  free_timer_ = &added;
}

template <typename Times>
typename RingQueue<Times>::Timer* RingQueue<Times>::take_timer() {
  if (!free_timer_) add_timer();
  Timer* const taken = free_timer_;
  free_timer_ = taken->next_free;
  taken->users = 1;
  return taken;
}

template <typename Times>
void RingQueue<Times>::drop(Timer* timer) noexcept {
  if (!timer || --timer->users > 0) return;
  forget(timer->times);
  timer->next_free = free_timer_;
  free_timer_ = timer;
}

template <typename Times>
void RingQueue<Times>::reserve_slot() {
  if (first_free_ < slots_.size()) return;
  slots_.emplace_back();
  slots_.back().next_free = slots_.size();
}

template <typename Times>
Event RingQueue<Times>::take_slot(std::uint64_t number, Timer* first, Timer* last) noexcept {
  const std::size_t index = first_free_;
  Slot& taken = slots_[index];
  first_free_ = taken.next_free;
  taken.number = number;
  taken.first = first;
  taken.last = last;
  for (Timer* const timer : {first, last})
    if (timer) ++timer->users;
  return Event(shared_from_this(), index + 1);
}

template <typename Times>
const typename RingQueue<Times>::Slot& RingQueue<Times>::slot(std::uint64_t token) const {
  if (token < 1 || token > slots_.size() || slots_[token - 1].number == 0)
    throw bad_input(fmt::format("event {} is none of this queue", token));
  return slots_[token - 1];
}

}  // namespace omniconv::devices
