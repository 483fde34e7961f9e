// Turns of threads that compile: who parses next.
#pragma once

#include <algorithm>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace omniconv::devices::cuda {

// What a text is expected to take.
struct ParseLength {
  double compile_seconds = 0;
  std::size_t characters = 0;  // decide where the seconds are equal
  auto operator<=>(const ParseLength&) const = default;
};

// One text at a time, the longest of those that wait first: what becomes of it takes longest.
class ParseTurns {
 public:
  void enter(const ParseLength& length) {
    std::unique_lock lock(mutex_);
    waiting_.push_back(length);
    changed_.wait(lock, [&] { return !is_taken_ && *std::max_element(waiting_.begin(), waiting_.end()) == length; });
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), length));
    is_taken_ = true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    is_taken_ = false;
    changed_.notify_all();
  }
  std::size_t waiting() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ParseLength> waiting_;
  bool is_taken_ = false;
};

}  // namespace omniconv::devices::cuda
