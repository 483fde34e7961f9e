#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>

namespace omniconv::image {

// Of a path's last name, in lower case and without its dot.
inline std::string extension_of(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

// As extension_of() gives it.
inline bool is_tiff_extension(std::string_view extension) {
  return extension == "tif" || extension == "tiff";
}
inline bool is_jpeg_extension(std::string_view extension) {
  static constexpr std::array<std::string_view, 5> known = {"jpg", "jpeg", "jpe", "jif", "jfif"};
  return std::find(known.begin(), known.end(), extension) != known.end();
}

}  // namespace omniconv::image
