// Memory and threads of the host for checks of one device, used again from one problem to the next: the system takes
// longer to hand out gigabytes that nobody has touched than to fill them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "omniconv/context.h"

namespace omniconv::devices {
class CpuDevice;
class HostMemory;
}  // namespace omniconv::devices

namespace omniconv::checking {

// Used by one thread at a time, which its own threads help.
class Host {
 public:
  static constexpr std::int64_t piece_bytes = std::int64_t{16} << 20;

  explicit Host(const Context& context);
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Some bytes, which hold anything at first. What ends is kept for those that ask next; it must not outlive the host.
  class Memory {
   public:
    Memory() = default;
    Memory(Memory&& other) noexcept { swap(other); }
    Memory& operator=(Memory&& other) noexcept {
      swap(other);
      return *this;
    }
    ~Memory();
    std::span<std::byte> bytes() const { return bytes_; }
    std::byte* data() const { return bytes_.data(); }

   private:
    friend class Host;
    void swap(Memory& other) noexcept {
      std::swap(host_, other.host_);
      std::swap(buffer_, other.buffer_);
      std::swap(bytes_, other.bytes_);
    }

    Host* host_ = nullptr;
    Buffer buffer_;
    std::span<std::byte> bytes_;
  };
  Memory take(std::int64_t bytes);

  // Two pieces of memory from and to which the device copies fastest.
  static constexpr std::size_t pieces = 2;
  std::byte* piece(std::size_t i);

  // Calls body(first, count) for parts of [0, count), of `part` each but for the last, by all cores at once.
  void in_parts(std::int64_t count, std::int64_t part, const std::function<void(std::int64_t, std::int64_t)>& body);

 private:
  void give_back(Buffer buffer);
  devices::CpuDevice& cpu();

  std::shared_ptr<devices::Device> device_;
  std::shared_ptr<devices::CpuDevice> cpu_;  // made when it is needed: most checks are small
  std::vector<Buffer> free_;
  std::array<std::shared_ptr<devices::HostMemory>, pieces> pieces_;
};

}  // namespace omniconv::checking
