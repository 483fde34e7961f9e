#pragma once

#include <filesystem>
#include <string>

namespace omniconv::image {

// Of a path's last name, in lower case and without its dot.
inline std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

}  // namespace omniconv::image
