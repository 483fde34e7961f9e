#include "devices/tensor_map.h"

#include <fmt/format.h>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv::devices {
namespace {

std::int64_t bytes_of(TensorMap::Element element) {
  using Element = TensorMap::Element;
  switch (element) {
    case Element::u8: return 1;
    case Element::u16:
    case Element::f16:
    case Element::bf16: return 2;
    case Element::u64:
    case Element::s64:
    case Element::f64: return 8;
    default: return 4;
  }
}

void check_value(const char* what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw bad_input(fmt::format("a tensor map: its {} of {} must be from {} to {}", what, value, least, most));
}

void check_multiple(const char* what, std::int64_t value, std::int64_t of) {
  if (value % of != 0)
    throw bad_input(fmt::format("a tensor map: its {} of {} bytes must be a multiple of {}", what, value, of));
}

// Of the innermost line of a box.
void check_line(const TensorMap& map, std::int64_t bytes) {
  if (map.swizzle == TensorMap::Swizzle::none) return;
  const std::int64_t most = std::int64_t{16} << static_cast<int>(map.swizzle);
  if (bytes > most)
    throw bad_input(
        fmt::format("a tensor map: lines of {} bytes of its box pass the {} that its swizzle takes", bytes, most));
}

void check_im2col(const TensorMap& map) {
  const int spatial = map.rank - 2;
  const std::int64_t least = spatial == 1 ? -32768 : spatial == 2 ? -128 : -16;
  for (int d = 0; d < spatial; ++d) {
    check_value("lower corner", map.lower_corner[static_cast<std::size_t>(d)], least, -least - 1);
    check_value("upper corner", map.upper_corner[static_cast<std::size_t>(d)], least, -least - 1);
  }
  check_value("channels", map.channels, 1, 256);
  check_value("pixels", map.pixels, 1, 1024);
  check_line(map, map.channels * bytes_of(map.element));
}

void check_tiles(const TensorMap& map) {
  for (int d = 0; d < map.rank; ++d) check_value("box", map.box[static_cast<std::size_t>(d)], 1, 256);
  const std::int64_t line = map.box[0] * bytes_of(map.element);
  check_multiple("box's line", line, 16);
  check_line(map, line);
}

}  // namespace

void check(const TensorMap& map) {
  check_value("rank", map.rank, map.is_im2col ? 3 : 1, TensorMap::most_dimensions);
  const std::int64_t all = map.buffer->bytes();
  check_value("offset", map.offset_bytes, 0, all);
  std::int64_t last = bytes_of(map.element);  // one behind the last byte
  for (int d = 0; d < map.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    check_value("extent", map.extents[i], 1, std::int64_t{1} << 32);
    check_value("element stride", map.element_strides[i], 1, 8);
    const std::int64_t stride = d == 0 ? bytes_of(map.element) : map.strides_bytes[i - 1];
    if (d > 0) {
      check_value("stride", stride, 16, (std::int64_t{1} << 40) - 16);
      check_multiple("stride", stride, 16);
    }
    last = checked_add(last, checked_multiply(map.extents[i] - 1, stride, "a tensor map"), "a tensor map");
  }
  if (last > all - map.offset_bytes)
    throw bad_input(fmt::format("a tensor map: {} bytes at offset {} do not fit in the buffer's {} bytes", last,
                                map.offset_bytes, all));
  if (map.is_im2col)
    check_im2col(map);
  else
    check_tiles(map);
}

}  // namespace omniconv::devices
