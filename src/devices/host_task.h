// A host function with its state, kept in place so that submitting allocates nothing. It may be called again and again.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace omniconv::devices {

class HostTask {
 public:
  static constexpr std::size_t capacity = 320;

  HostTask() = default;
  template <typename Function>
  explicit HostTask(Function function) {
    static_assert(sizeof(Function) <= capacity && std::is_nothrow_move_constructible_v<Function>);
    new (storage_) Function(std::move(function));
    call_ = [](const void* self) { (*static_cast<const Function*>(self))(); };
    move_ = [](void* from, void* to) {
      if (to != nullptr) new (to) Function(std::move(*static_cast<Function*>(from)));
      static_cast<Function*>(from)->~Function();
    };
  }
  HostTask(HostTask&& other) noexcept { take(other); }
  HostTask& operator=(HostTask&& other) noexcept {
    clear();
    take(other);
    return *this;
  }
  ~HostTask() { clear(); }
  void operator()() const { call_(storage_); }

 private:
  void take(HostTask& other) noexcept {
    call_ = other.call_;
    move_ = other.move_;
    if (move_ != nullptr) move_(other.storage_, storage_);
    other.call_ = nullptr;
    other.move_ = nullptr;
  }
  void clear() noexcept {
    if (move_ != nullptr) move_(storage_, nullptr);
    move_ = nullptr;
  }

  alignas(std::max_align_t) std::byte storage_[capacity];
  void (*call_)(const void*) = nullptr;
  void (*move_)(void* from, void* to) = nullptr;  // to null: destroy
};

}  // namespace omniconv::devices
