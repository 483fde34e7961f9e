// Constants of a program as compilers take them.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv::devices {

// "-DNAME=VALUE" for each. Refuses names and values that could be more than one option.
inline std::vector<std::string> definition_options(std::span<const Definition> definitions) {
  std::vector<std::string> options;
  for (const Definition& definition : definitions) {
    if (definition.name.empty() ||
        (definition.name + definition.value).find_first_of(" \t\n\"'\\") != std::string::npos)
      throw bad_input(fmt::format("the definition {}={} of a kernel text: names and values hold no blanks or quotes",
                                  definition.name, definition.value));
    options.push_back(fmt::format("-D{}={}", definition.name, definition.value));
  }
  return options;
}

// The first lines of a compiler's log that say an error, or of all of it where none does, as one. They name the file
// and the line that a text's #line says.
std::string first_lines(std::string_view log);

}  // namespace omniconv::devices
