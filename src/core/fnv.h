// FNV-1a, 64 bits: against damage, not against forgers. Its steps are one-to-one: no change of a single byte leaves it
// as it was.
#pragma once

#include <cstdint>
#include <string_view>

namespace omniconv {

// Of text that comes in pieces, each is given the hash of those before it.
inline std::uint64_t fnv_hash(std::string_view text, std::uint64_t before = 0xCBF29CE484222325) {
  std::uint64_t value = before;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return value;
}

}  // namespace omniconv
