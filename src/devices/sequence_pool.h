// Sequences that are used again.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "devices/sequence.h"

namespace omniconv::devices {

// Any thread may take a sequence. When its last holder lets go of it, in whatever thread, it is emptied and comes back;
// the pool lasts as long as they do. Taking one that was prepared, or has come back, allocates nothing.
class SequencePool : public std::enable_shared_from_this<SequencePool> {
 public:
  explicit SequencePool(int prepared);
  std::shared_ptr<Sequence> take();

 private:
  static constexpr std::size_t block_bytes = 128;  // for what a shared_ptr allocates
  struct Node {
    Sequence sequence;
    alignas(std::max_align_t) std::byte block[block_bytes];
    Node* next_free = nullptr;
  };
  template <typename T>
  struct Allocator;

  void add_node();
  void give_back(Node& node);

  std::mutex mutex_;
  std::deque<Node> nodes_;
  Node* free_ = nullptr;
};

}  // namespace omniconv::devices
