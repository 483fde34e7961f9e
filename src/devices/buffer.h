// Memory of a device, and ranges of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace omniconv::devices {

class Device;

// Where memory lies. The same address of the same space is the same byte.
struct Place {
  const void* space = nullptr;  // null: the addresses of this process, CUDA's among them
  std::uintptr_t address = 0;
};

// What kernels may do with memory.
struct Access {
  bool read = true, write = true;
};

class Buffer : public std::enable_shared_from_this<Buffer> {
 public:
  virtual ~Buffer() = default;
  virtual std::int64_t bytes() const = 0;
  // The memory itself where the host can touch it (CPU device); null elsewhere.
  virtual std::byte* host() const { return nullptr; }
  // The CUcontext or cl_context that it is of; null elsewhere.
  virtual const void* context() const { return nullptr; }
  // Of the first byte. Buffers that are borrowed may share memory.
  virtual Place place() const {
    return host() ? Place{nullptr, reinterpret_cast<std::uintptr_t>(host())} : Place{this};
  }
  // Whose memory it is, where the host cannot touch it.
  virtual std::shared_ptr<Device> device() const { return nullptr; }
  virtual Access access() const { return {}; }
};

struct MemoryRange {
  const Buffer& buffer;
  std::int64_t offset_bytes = 0, bytes = 0;
};

inline std::uintptr_t address_of(const MemoryRange& range) {
  return range.buffer.place().address + static_cast<std::uintptr_t>(range.offset_bytes);
}
inline bool overlap(const MemoryRange& a, const MemoryRange& b) {
  if (a.bytes == 0 || b.bytes == 0 || a.buffer.place().space != b.buffer.place().space) return false;
  return address_of(a) < address_of(b) + static_cast<std::uintptr_t>(b.bytes) &&
         address_of(b) < address_of(a) + static_cast<std::uintptr_t>(a.bytes);
}

// Throw for a range outside of its buffer, and for a copy whose ranges overlap.
void check_range(std::string_view what, const MemoryRange& range);
void check_copy(const MemoryRange& to, const MemoryRange& from);

}  // namespace omniconv::devices
