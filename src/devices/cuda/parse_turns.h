// Turns of threads that compile: who parses next.
#pragma once

#include <algorithm>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

namespace omniconv::devices::cuda {

// What compiling a text is expected to take.
struct ExpectedWork {
  double seconds = 0;
  std::size_t characters = 0;  // of the text: decide where the seconds are equal
  auto operator<=>(const ExpectedWork&) const = default;
};

// One text at a time, of those that wait the one first that will take longest.
class ParseTurns {
 public:
  void enter(const ExpectedWork& work) {
    std::unique_lock lock(mutex_);
    waiting_.push_back(work);
    changed_.wait(lock, [&] { return !is_taken_ && *std::max_element(waiting_.begin(), waiting_.end()) == work; });
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), work));
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
  std::vector<ExpectedWork> waiting_;
  bool is_taken_ = false;
};

}  // namespace omniconv::devices::cuda
