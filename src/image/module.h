// The module that reads and writes every other format, through OpenImageIO: opened when a file needs it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "image/image.h"

namespace omniconv::image {

// What the format that a path's extension names can say.
struct FormatTraits {
  bool orientation = false;
  bool alpha_apart = false;  // opacity, but not that colours are multiplied by it
};

// What the module's one exported function, of the name below, returns.
struct Module {
  const char* version;  // of the build, which must be the library's
  std::unique_ptr<ImageReader> (*open)(const std::string& path, int page, std::int64_t max_resident_bytes);
  std::unique_ptr<ImageWriter> (*create)(const std::string& path, const ImageInfo& like, int threads);
  FormatTraits (*traits)(const std::string& path);
};
using ModuleEntry = const Module* (*)();
inline constexpr const char* module_entry_name = "omniconv_image_module";

// Throws when the module is not installed; `path` names the file that needs it.
const Module& image_module(const std::string& path);

}  // namespace omniconv::image
