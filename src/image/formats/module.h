// What reads and writes the formats that the library itself does not, opened when a file needs it: a small module for
// plain PNG, TIFF and JPEG files, and one for all others, through OpenImageIO, which takes a hundred times as long to
// load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "image/image.h"

namespace omniconv::image {

// What the format that a path's extension names can say.
struct FormatTraits {
  bool orientation = false;
  bool alpha_apart = false;  // opacity, but not that colours are multiplied by it
  bool opacity = true;       // at all
};

// What the module's one exported function, of the name below, returns.
struct Module {
  const char* version;  // of the build, which must be the library's
  // These return nullptr for what is not this module's: the other one then serves it, or says why it cannot be served.
  std::unique_ptr<ImageReader> (*open)(const std::string& path, int page, std::int64_t max_resident_bytes);
  std::unique_ptr<ImageWriter> (*create)(const std::string& path, const ImageInfo& like, const WriteOptions& options);
  FormatTraits (*traits)(const std::string& path);  // of a path that is_named_plain(), for the small module
  // What the module's open() would give as metadata, of a file whose pixels it may not be able to read. The small
  // module has none.
  std::shared_ptr<const Metadata> (*describe)(const std::string& path);
  // How many images the file holds; of the module for every format. It refuses as open() does.
  int (*count)(const std::string& path, std::int64_t max_resident_bytes);
};
using ModuleEntry = const Module* (*)();
inline constexpr const char* module_entry_name = "omniconv_image_module";

// Where a module may lie: beside this library, or in the folder of its modules, as installed.
std::vector<std::filesystem::path> module_files(const char* file_name);

// The module for every format. Throws when it is not installed; `path` names the file that needs it.
const Module& image_module(const std::string& path);

// The module for plain files, or nullptr where it is not installed.
const Module* plain_module();
// `extension`, in lower case and without its dot, is that of a format whose plain files the small module serves.
bool is_named_plain(std::string_view extension);
// The same of a file's first bytes.
bool may_be_plain(const std::vector<std::byte>& beginning);

}  // namespace omniconv::image
