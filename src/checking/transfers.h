// Copies to and from a device's buffers, between guards, that find out what was written and should not be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "omniconv/context.h"

namespace omniconv::checking {

inline constexpr std::int64_t guard_bytes = 256;

// Large arrays are held once by the host, not for each copy.
class Transfers {
 public:
  explicit Transfers(const Context& context) : context_(context), queue_(context.make_queue()) {}
  Queue& queue() { return queue_; }

  // A buffer of `bytes` between guards: `data`, or poison where it is null. The guards are poison.
  Buffer put(const std::byte* data, std::int64_t bytes, std::int64_t guard);
  // A buffer that begins with `bytes` of poison, and a guard behind them.
  Buffer put_before_guard(std::int64_t bytes) { return put(nullptr, bytes + guard_bytes, 0); }
  std::vector<std::byte> get(const Buffer& buffer, std::int64_t first, std::int64_t bytes);
  bool are_guards_intact(const Buffer& buffer);
  bool is_end_intact(const Buffer& buffer);
  // Between intact guards.
  bool holds(const Buffer& buffer, const std::vector<std::byte>& data);

 private:
  bool is_guard_intact(const Buffer& buffer, std::int64_t first);
  void spread_poison(const Buffer& buffer, std::int64_t first, std::int64_t bytes);

  const Context& context_;
  Queue queue_;
};

}  // namespace omniconv::checking
