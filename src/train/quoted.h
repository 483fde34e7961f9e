// Words of hostile files in errors.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace omniconv {

// As much of it as a line has room for, and nothing that a terminal would obey.
inline std::string quoted_word(std::string_view word) {
  constexpr std::size_t most = 40;
  std::string shown(word.substr(0, most));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, '?');
  return "'" + shown + (word.size() > most ? "...'" : "'");
}

}  // namespace omniconv
