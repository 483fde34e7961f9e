// What the library finds in the module for plain PNG, TIFF and JPEG files.
#include <algorithm>
#include <string_view>

#include "image/formats/extension.h"
#include "image/formats/module.h"
#include "image/formats/plain/plain.h"

namespace omniconv::image::plain {
namespace {

// Of the extensions that is_named_plain() knows, those that are neither are JPEG's.
bool is_png_extension(std::string_view extension) {
  return extension == "png";
}

std::unique_ptr<ImageReader> open(const std::string& path, int page, std::int64_t max_resident_bytes) {
  if (page > 1) return nullptr;
  auto file = std::make_shared<const InputFile>(path);
  const std::vector<std::byte> beginning = file->read_some(0, 8);
  const std::string_view text(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  if (text == "\x89PNG\r\n\x1A\n") return open_png(std::move(file));
  if (text.starts_with("\xFF\xD8\xFF")) return open_jpeg(std::move(file));
  if (text.starts_with("II") || text.starts_with("MM")) return open_tiff(std::move(file), max_resident_bytes);
  return nullptr;
}

std::unique_ptr<ImageWriter> create(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  const std::string extension = extension_of(path);
  if (is_png_extension(extension)) return create_png(path, like, options);
  return is_tiff_extension(extension) ? create_tiff(path, like, options) : create_jpeg(path, like, options);
}

// PNG has opacity apart and no orientation. The others keep an orientation; JPEG has no opacity, and TIFF either kind.
FormatTraits traits(const std::string& path) {
  const std::string extension = extension_of(path);
  const bool is_png = is_png_extension(extension);
  return {.orientation = !is_png, .alpha_apart = is_png, .opacity = is_png || is_tiff_extension(extension)};
}

}  // namespace

const PlainMetadata* metadata_for(const ImageInfo& like, const std::string& format, bool& keeps) {
  const auto* const metadata = dynamic_cast<const PlainMetadata*>(like.metadata.get());
  keeps = like.metadata == nullptr;
  if (metadata == nullptr) return nullptr;
  // PNG's chunks say nothing of a channel of opacity.
  const auto counted = [&format](std::int64_t channels) { return format == "png" ? (channels - 1) / 2 : channels; };
  const bool is_same = metadata->format == format && counted(metadata->channels) == counted(like.c);
  keeps = is_same || (metadata->is_bare() && metadata->format != format);
  return is_same ? metadata : nullptr;
}

bool is_srgb(const ImageInfo& like) {
  const auto* const metadata = dynamic_cast<const PlainMetadata*>(like.metadata.get());
  return metadata != nullptr && (metadata->format == "jpeg" || (metadata->format == "png" && !metadata->says_more));
}

}  // namespace omniconv::image::plain

extern "C" const omniconv::image::Module* omniconv_image_module() {
  namespace plain = omniconv::image::plain;
  static const omniconv::image::Module module = {OMNICONV_VERSION, &plain::open, &plain::create,
                                                 &plain::traits,   nullptr,      nullptr};
  return &module;
}
