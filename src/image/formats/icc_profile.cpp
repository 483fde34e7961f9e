#include "image/formats/icc_profile.h"

#include <algorithm>
#include <initializer_list>

#include "image/formats/big_endian.h"

namespace omniconv::image {

bool is_valid_profile(std::string_view profile, std::int64_t channels) {
  if (profile.size() < 132) return false;
  const auto number = [profile](std::size_t at) -> std::uint64_t { return big_endian_at(profile.data() + at); };
  const auto is_one_of = [profile](std::size_t at, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), profile.substr(at, 4)) != words.end();
  };
  const bool header = number(0) == profile.size() && (profile[8] <= 3 || profile.size() % 4 == 0) &&
                      is_one_of(12, {"scnr", "mntr", "prtr", "spac"}) &&
                      is_one_of(16, {channels >= 3 ? "RGB " : "GRAY"}) && is_one_of(20, {"XYZ ", "Lab "}) &&
                      is_one_of(36, {"acsp"}) && number(64) < 4;
  const bool is_d50 = number(68) == 0xF6D6 && number(72) == 0x10000 && number(76) == 0xD32D;
  const std::uint64_t tags = number(128);
  if (!header || !is_d50 || tags > (profile.size() - 132) / 12) return false;
  for (std::size_t tag = 132; tag < 132 + 12 * tags; tag += 12)
    if (number(tag + 4) > profile.size() || number(tag + 8) > profile.size() - number(tag + 4)) return false;
  return true;
}

}  // namespace omniconv::image
