// A program as the compiler gives it to the driver: a shared library behind its size.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace omniconv::by_processor {

// Of each kernel the library has functions of these names and its own.
inline constexpr const char *call_prefix = "omniconv_call_", *parameter_prefix = "omniconv_parameter_";

inline std::string image_of(std::string_view library) {
  const std::size_t bytes = library.size();
  std::string image(sizeof bytes, '\0');
  std::memcpy(image.data(), &bytes, sizeof bytes);
  return image.append(library);
}
inline std::string_view library_of(const void* image) {
  std::size_t bytes;
  std::memcpy(&bytes, image, sizeof bytes);
  return {static_cast<const char*>(image) + sizeof bytes, bytes};
}

}  // namespace omniconv::by_processor
