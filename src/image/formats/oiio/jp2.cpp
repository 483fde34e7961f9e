// The colour profile of a JPEG 2000 file, which OpenImageIO does not write: ISO/IEC 15444-1, annex I.
#include <cstdint>
#include <string>
#include <string_view>

#include "image/formats/big_endian.h"
#include "image/formats/oiio/oiio.h"

namespace omniconv::image::oiio {
namespace {

constexpr std::size_t head_bytes = 8;  // of a box: its length, in big endian, and its name

std::string box(std::string_view name, std::string_view content) {
  const auto length = static_cast<std::uint32_t>(head_bytes + content.size());
  return big_endian(length).append(name).append(content);
}

struct Place {
  std::size_t begin = std::string_view::npos, end = 0;
};

// The box of that name among those that follow each other between two places.
Place find_box(std::string_view file, std::string_view name, std::size_t begin, std::size_t end) {
  while (end - begin >= head_bytes) {
    const std::size_t length = big_endian_at(file.data() + begin);
    if (length < head_bytes || length > end - begin) break;
    if (file.substr(begin + 4, 4) == name) return {begin, begin + length};
    begin += length;
  }
  return {};
}

}  // namespace

std::string with_profile(const std::string& jp2, std::string_view profile) {
  const Place header = find_box(jp2, "jp2h", 0, jp2.size());
  if (header.begin == std::string::npos) return jp2;
  const Place color = find_box(jp2, "colr", header.begin + head_bytes, header.end);
  if (color.begin == std::string::npos) return jp2;
  // By a profile, of no precedence, with the colours' exactness unsaid.
  const std::string method("\2\0\0", 3);
  const std::string before = jp2.substr(header.begin + head_bytes, color.begin - header.begin - head_bytes);
  const std::string after = jp2.substr(color.end, header.end - color.end);
  return jp2.substr(0, header.begin) + box("jp2h", before + box("colr", method + std::string(profile)) + after) +
         jp2.substr(header.end);
}

}  // namespace omniconv::image::oiio
