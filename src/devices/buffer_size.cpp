#include "devices/buffer_size.h"

#include <fmt/format.h>

#include "omniconv/error.h"

namespace omniconv::devices {

void check_buffer_size(std::int64_t bytes, const DeviceInfo& info) {
  if (bytes < 0) throw bad_input(fmt::format("a buffer of {} bytes: the size must be at least 0", bytes));
  if (bytes > info.max_buffer_bytes)
    throw bad_input(
        fmt::format("a buffer of {} bytes is larger than device {} can hold in one ({} bytes); use smaller parts, "
                    "or another device",
                    bytes, info.id, info.max_buffer_bytes));
}

}  // namespace omniconv::devices
