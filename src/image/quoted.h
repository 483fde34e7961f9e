// Text of unknown origin made fit for a one-line message.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace omniconv::image {

// In quotes, at most 24 bytes of it, everything but printable ASCII as \xHH.
inline std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 24;
  std::string result = "\"";
  for (const char character : text.substr(0, longest)) {
    if (character >= ' ' && character <= '~') {
      result += character;
    } else {
      char escape[5];
      std::snprintf(escape, sizeof escape, "\\x%02X", static_cast<unsigned char>(character));
      result += escape;
    }
  }
  return result + (text.size() > longest ? "...\"" : "\"");
}

}  // namespace omniconv::image
