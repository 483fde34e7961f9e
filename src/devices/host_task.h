// A host function with its state, kept in place so that submitting allocates nothing. It may be called again and again.
#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace omniconv::devices {

template <typename... Arguments>
class InPlaceFunction {
 public:
  static constexpr std::size_t capacity = 320;

  InPlaceFunction() = default;
  template <typename Function>
  explicit InPlaceFunction(Function function) {
    static_assert(sizeof(Function) <= capacity && std::is_nothrow_move_constructible_v<Function>);
    new (storage_) Function(std::move(function));
    call_ = [](const void* self, Arguments... arguments) { (*static_cast<const Function*>(self))(arguments...); };
    move_ = [](void* from, void* to) {
      if (to != nullptr) new (to) Function(std::move(*static_cast<Function*>(from)));
      static_cast<Function*>(from)->~Function();
    };
  }
  InPlaceFunction(InPlaceFunction&& other) noexcept { take(other); }
  InPlaceFunction& operator=(InPlaceFunction&& other) noexcept {
    clear();
    take(other);
    return *this;
  }
  ~InPlaceFunction() { clear(); }
  void operator()(Arguments... arguments) const { call_(storage_, arguments...); }

 private:
  void take(InPlaceFunction& other) noexcept {
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
  void (*call_)(const void*, Arguments...) = nullptr;
  void (*move_)(void* from, void* to) = nullptr;  // to null: destroy
};

using HostTask = InPlaceFunction<>;
// Given the queue's CUstream or cl_command_queue, it submits work of its own there, such as a vendor library's.
using NativeCall = InPlaceFunction<void*>;

}  // namespace omniconv::devices
