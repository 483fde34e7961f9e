#pragma once

#include <cstdint>
#include <string>

namespace omniconv::image {

// The four bytes of a number, the highest first, as PNG and JPEG 2000 have it.
inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

}  // namespace omniconv::image
