// Text of unknown origin made fit for a one-line message.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace omniconv {

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

// A library's message, without its end of line or full stop.
inline std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '.')) text.pop_back();
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

}  // namespace omniconv
