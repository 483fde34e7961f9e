// Text of unknown origin made fit for a one-line message.
#pragma once

#include <algorithm>
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

// The first line of a library's message, without its full stop; at most 200 bytes of it. Some libraries add a line for
// each row of an image.
inline std::string one_line(std::string text) {
  constexpr std::size_t longest = 200;
  text.erase(0, text.find_first_not_of("\r\n "));
  text.resize(std::min(text.size(), text.find_first_of("\r\n")));
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return text;
}

}  // namespace omniconv
