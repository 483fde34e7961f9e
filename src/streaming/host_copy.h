// Copies of rows within the memory of the host, by several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "devices/cpu/cpu_device.h"

namespace omniconv {

// Rows, `stride_bytes` apart.
template <typename Byte>
struct HostRows {
  Byte* first;
  std::int64_t stride_bytes;
};

class HostCopier {
 public:
  explicit HostCopier(int threads) : threads_(std::make_shared<devices::CpuDevice>(threads)) {}
  void copy(HostRows<const std::byte> from, HostRows<std::byte> to, std::int64_t row_bytes, std::int64_t rows) const;

 private:
  std::shared_ptr<devices::CpuDevice> threads_;
};

}  // namespace omniconv
