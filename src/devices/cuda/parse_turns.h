// Turns of threads that compile: who parses next.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace omniconv::devices::cuda {

// One text at a time, the longest of those that wait first: what becomes of it takes longest.
class ParseTurns {
 public:
  void enter(std::size_t length) {
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
  std::vector<std::size_t> waiting_;  // their lengths
  bool is_taken_ = false;
};

}  // namespace omniconv::devices::cuda
