#include "devices/sequence_pool.h"

namespace omniconv::devices {

// Gives a shared_ptr the node's own block, and the node back to the pool when nobody counts any more.
template <typename T>
struct SequencePool::Allocator {
  using value_type = T;

  Allocator(std::shared_ptr<SequencePool> the_pool, Node& the_node) : pool(std::move(the_pool)), node(&the_node) {}
  template <typename U>
  Allocator(const Allocator<U>& other) : pool(other.pool), node(other.node) {}
  T* allocate(std::size_t) {
    static_assert(sizeof(T) <= block_bytes && alignof(T) <= alignof(std::max_align_t));
    return reinterpret_cast<T*>(node->block);
  }
  void deallocate(T*, std::size_t) { pool->give_back(*node); }
  template <typename U>
  bool operator==(const Allocator<U>& other) const {
    return node == other.node;
  }

  std::shared_ptr<SequencePool> pool;
  Node* node;
};

SequencePool::SequencePool(int prepared) {
  for (int i = 0; i < prepared; ++i) add_node();
}

void SequencePool::add_node() {
  Node& added = nodes_.emplace_back();
  added.sequence.reserve(4, 64, 1024);  // of a run of a few launches: larger ones grow once
  added.next_free = free_;
  free_ = &added;
}

std::shared_ptr<Sequence> SequencePool::take() {
  std::unique_lock lock(mutex_);
  if (!free_) add_node();
  Node& taken = *free_;
  free_ = taken.next_free;
  lock.unlock();
  return {&taken.sequence, [](Sequence* sequence) { sequence->clear(); },
          Allocator<Sequence>(shared_from_this(), taken)};
}

void SequencePool::give_back(Node& node) {
  const std::lock_guard lock(mutex_);
  node.next_free = free_;
  free_ = &node;
}

}  // namespace omniconv::devices
