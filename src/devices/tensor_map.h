// A tensor in a buffer, as the copy engines of newer GPUs read it: a kernel that takes one copies boxes of it.
#pragma once

#include <array>
#include <cstdint>

#include "devices/buffer.h"

namespace omniconv::devices {

// One without dimensions and buffer is of nothing: no kernel reads it.
// Dimensions are listed from the innermost, whose elements lie next to each other; those from `rank` on mean nothing.
// Names and limits are those of cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col, which encode it.
struct TensorMap {
  static constexpr int most_dimensions = 5;
  enum class Element : std::uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16, f32_flushed, tf32 };
  // How lines of so many bytes are laid out in local memory, so that reads of a column meet no bank twice.
  enum class Swizzle : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };
  enum class Promotion : std::uint8_t { none, bytes_64, bytes_128, bytes_256 };  // of what the second cache fetches

  const Buffer* buffer = nullptr;
  std::int64_t offset_bytes = 0;
  Element element = Element::f32;
  int rank = 0;
  std::array<std::int64_t, most_dimensions> extents{};
  std::array<std::int64_t, most_dimensions - 1> strides_bytes{};  // of dimension 1 and up
  std::array<std::int64_t, most_dimensions> box{};                // elements that one copy takes; not where im2col
  std::array<std::int64_t, most_dimensions> element_strides{1, 1, 1, 1, 1};
  Swizzle swizzle = Swizzle::none;
  Promotion promotion = Promotion::none;
  bool fills_with_nan = false;  // outside of the extents: else with zeros

  // Boxes of filter windows: of NWC, NHWC or NDHWC tensors, whose rank is 3 to 5. Corners are of the spatial
  // dimensions, from the innermost.
  bool is_im2col = false;
  std::array<std::int64_t, most_dimensions - 2> lower_corner{}, upper_corner{};
  std::int64_t channels = 0, pixels = 0;  // of a box
};

// Throws bad_input where the geometry cannot be, or passes the end of the buffer.
void check(const TensorMap& map);

}  // namespace omniconv::devices
