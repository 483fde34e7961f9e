// Tensor maps as the driver by a processor encodes them: what copies of boxes do with them.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace omniconv::by_processor {

struct EncodedMap {
  std::byte* begin = nullptr;
  int rank = 0, element_bytes = 0, swizzle = 0;  // 0: none; 1, 2, 3: of lines of 32, 64, 128 bytes
  std::array<std::int64_t, 5> extents{}, strides_bytes{}, box{};
  bool is_im2col = false, fills_with_nan = false;
  std::array<int, 3> lower{}, upper{};
  std::array<std::int64_t, 5> steps{};
  int channels = 0, pixels = 0;

  auto operator<=>(const EncodedMap&) const = default;
};

// Of an argument of 128 bytes.
inline const EncodedMap& map_of(const void* argument) {
  return **static_cast<const EncodedMap* const*>(argument);
}

}  // namespace omniconv::by_processor
