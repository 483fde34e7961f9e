// A hand-over between two threads of a pipeline; how much is under way is bounded by the buffers that go round.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

namespace omniconv {

template <typename T>
class Channel {
 public:
  void put(T value) {
    {
      const std::lock_guard lock(mutex_);
      values_.push_back(std::move(value));
    }
    changed_.notify_all();
  }
  // Nothing when the channel is closed and empty.
  std::optional<T> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    return value;
  }
  // What was put before can still be taken.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace omniconv
