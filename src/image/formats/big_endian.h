// Numbers of four bytes, the highest first, as PNG, ICC profiles and JPEG 2000 have them.
#pragma once

#include <cstdint>
#include <string>

namespace omniconv::image {

inline std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

// Of the four bytes from there on.
inline std::uint32_t big_endian_at(const void* bytes) {
  const auto* const byte = static_cast<const unsigned char*>(bytes);
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | byte[i];
  return value;
}

}  // namespace omniconv::image
