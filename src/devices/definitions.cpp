#include "devices/definitions.h"

#include <algorithm>

namespace omniconv::devices {

std::string first_lines(std::string_view log) {
  constexpr int lines_shown = 4;
  constexpr std::size_t characters_shown = 600;
  if (const std::size_t error = log.find("error"); error != std::string_view::npos)
    log.remove_prefix(log.find_last_of('\n', error) + 1);  // npos + 1 is 0
  std::string shown;
  int lines = 0;
  for (std::size_t begin = 0; begin < log.size() && lines < lines_shown && shown.size() < characters_shown;) {
    const std::size_t end = std::min(log.find_first_of(std::string_view("\n\r\0", 3), begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    shown += (lines++ ? " | " : "");
    shown += line.substr(0, characters_shown);
  }
  return shown.empty() ? "an empty log" : shown;
}

}  // namespace omniconv::devices
