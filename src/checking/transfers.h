// Copies to and from a device's buffers, between guards, that find out what was written and should not be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checking/host.h"
#include "omniconv/context.h"

namespace omniconv::checking {

inline constexpr std::int64_t guard_bytes = 256;

// Large arrays are held once by the host, not for each copy: they go in pieces through memory that the device copies
// fastest.
class Transfers {
 public:
  Transfers(const Context& context, Host& host) : context_(context), host_(host), queue_(context.make_queue()) {}
  Queue& queue() { return queue_; }

  // A buffer of `bytes` between guards: `data`, or poison where it is null. The guards are poison.
  Buffer put(const std::byte* data, std::int64_t bytes, std::int64_t guard);
  // A buffer that begins with `bytes` of poison, and a guard behind them.
  Buffer put_before_guard(std::int64_t bytes) { return put(nullptr, bytes + guard_bytes, 0); }
  // The device's seconds.
  double upload(const Buffer& to, std::int64_t first, const std::byte* data, std::int64_t bytes);
  std::vector<std::byte> get(const Buffer& buffer, std::int64_t first, std::int64_t bytes);
  // The elements of so many bytes at these places of an array between guards, one behind the other.
  std::vector<std::byte> get_elements(const Buffer& buffer, std::int64_t size, std::span<const std::int64_t> places);
  bool are_guards_intact(const Buffer& buffer);
  bool is_end_intact(const Buffer& buffer);
  // Between intact guards.
  bool holds(const Buffer& buffer, std::span<const std::byte> data);
  // Sets every byte of a part.
  void fill(const Buffer& buffer, std::int64_t first, std::int64_t bytes, std::uint8_t value);

 private:
  bool is_guard_intact(const Buffer& buffer, std::int64_t first);
  bool equals(const std::byte* a, const std::byte* b, std::int64_t bytes);
  bool holds_between_guards(const Buffer& buffer, std::span<const std::byte> data);

  const Context& context_;
  Host& host_;
  Queue queue_;
};

}  // namespace omniconv::checking
