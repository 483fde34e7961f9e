// What the library finds in the module for plain TIFF and JPEG files.
#include <algorithm>
#include <filesystem>
#include <string_view>

#include "image/formats/module.h"
#include "image/formats/plain/plain.h"

namespace omniconv::image::plain {
namespace {

bool is_named_tiff(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  return extension.size() > 1 && (extension[1] == 't' || extension[1] == 'T');
}

std::unique_ptr<ImageReader> open(const std::string& path, int page, std::int64_t max_resident_bytes) {
  if (page > 1) return nullptr;
  auto file = std::make_shared<const InputFile>(path);
  const std::vector<std::byte> beginning = file->read_some(0, 3);
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  if (text == "\xFF\xD8\xFF") return open_jpeg(std::move(file));
  if (text.starts_with("II") || text.starts_with("MM")) return open_tiff(std::move(file), max_resident_bytes);
  return nullptr;
}

std::unique_ptr<ImageWriter> create(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  return is_named_tiff(path) ? create_tiff(path, like, options) : create_jpeg(path, like, options);
}

// Both keep an orientation; JPEG has no opacity, and TIFF has either kind.
FormatTraits traits(const std::string& path) {
  return {.orientation = true, .alpha_apart = false, .opacity = is_named_tiff(path)};
}

}  // namespace

const PlainMetadata* metadata_for(const ImageInfo& like, const std::string& format, bool& keeps) {
  const auto* const metadata = dynamic_cast<const PlainMetadata*>(like.metadata.get());
  keeps = like.metadata == nullptr;
  if (metadata == nullptr) return nullptr;
  const bool is_same = metadata->format == format && metadata->channels == like.c;
  keeps = is_same || (metadata->is_bare() && metadata->format != format);
  return is_same ? metadata : nullptr;
}

}  // namespace omniconv::image::plain

extern "C" const omniconv::image::Module* omniconv_image_module() {
  namespace plain = omniconv::image::plain;
  static const omniconv::image::Module module = {OMNICONV_VERSION, &plain::open, &plain::create,
                                                 &plain::traits,   nullptr,      nullptr};
  return &module;
}
