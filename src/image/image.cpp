#include "image/image.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "image/alpha_apart.h"
#include "image/atomic_file.h"
#include "image/formats/extension.h"
#include "image/formats/module.h"
#include "image/formats/npy/npy.h"
#include "image/formats/pnm/pnm.h"
#include "image/input_file.h"
#include "image/oriented.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

FormatTraits traits_of(const std::string& path, const std::string& extension) {
  if (extension == "npy") return {};
  if (is_pnm_extension(extension)) return {.orientation = false, .alpha_apart = true, .opacity = extension == "pam"};
  const Module* const plain = is_named_plain(extension) ? plain_module() : nullptr;
  return plain != nullptr ? plain->traits(path) : image_module(path).traits(path);
}

std::unique_ptr<ImageReader> open_by_module(const std::string& path, const std::vector<std::byte>& beginning, int page,
                                            std::int64_t max_resident_bytes) {
  if (may_be_plain(beginning))
    if (const Module* const plain = plain_module())
      if (auto reader = plain->open(path, page, max_resident_bytes)) return reader;
  return image_module(path).open(path, page, max_resident_bytes);
}

std::unique_ptr<ImageWriter> create_by_module(const std::string& path, const std::string& extension,
                                              const ImageInfo& like, const WriteOptions& options) {
  if (is_named_plain(extension) && options.pages == nullptr)
    if (const Module* const plain = plain_module())
      if (auto writer = plain->create(path, like, options)) return writer;
  const Module& module = image_module(path);
  if (like.metadata == nullptr || like.metadata->source().empty()) return module.create(path, like, options);
  ImageInfo described = like;
  described.metadata = module.describe(like.metadata->source());
  return module.create(path, described, options);
}

std::unique_ptr<ImageWriter> create_as_it_is(const std::string& path, const std::string& extension,
                                             const ImageInfo& like, const WriteOptions& options) {
  if (extension == "npy") return create_npy(path, like);
  if (is_pnm_extension(extension)) return create_pnm(path, extension, like);
  return create_by_module(path, extension, like, options);
}

// Whether the encoder that `options` choose loses bits as `quality` says.
bool has_quality(std::string_view extension, const WriteOptions& options) {
  if (extension == "webp") return options.compression != "lossless";
  return is_jpeg_extension(extension) || options.compression == "jpeg";
}

void check_options(const std::string& path, std::string_view extension, const WriteOptions& options) {
  if (!options.compression.empty()) {
    const std::vector<std::string_view> known = compressions_of(extension);
    if (known.empty())
      throw bad_input(fmt::format("{}: .{} has no choice of compressions; .tif, .png and .webp have", path, extension));
    if (std::find(known.begin(), known.end(), options.compression) == known.end())
      throw bad_input(fmt::format("{}: unknown compression '{}': .{} has {}", path, options.compression, extension,
                                  fmt::join(known, ", ")));
  }
  if (options.quality != 0 && !has_quality(extension, options))
    throw bad_input(fmt::format(
        "{}: a quality is of .jpg, of .webp with loss, and of .tif with the compression jpeg; leave it out", path));
  if (options.quality < 0 || options.quality > 100)
    throw bad_input(fmt::format("{}: the quality is {}: it must be from 1 to 100", path, options.quality));
}

}  // namespace

std::unique_ptr<ImageReader> open_image(const std::string& path, int page, std::int64_t max_resident_bytes) {
  if (page < 0) throw bad_input(fmt::format("{}: page {}; pages count from 1", path, page));
  auto file = std::make_shared<const InputFile>(path);
  const std::vector<std::byte> beginning = file->read_some(0, 16);
  if (is_pnm(beginning)) return open_pnm(std::move(file), page);
  if (is_npy(beginning)) {
    if (page > 1) throw bad_input(fmt::format("{} holds one array; there is no page {}", path, page));
    return open_npy(std::move(file));
  }
  return open_by_module(path, beginning, page, max_resident_bytes);
}

int count_images(const std::string& path, std::int64_t max_resident_bytes) {
  const auto file = std::make_shared<const InputFile>(path);
  const std::vector<std::byte> beginning = file->read_some(0, 16);
  if (is_pnm(beginning)) return count_images_of_pnm(*file);
  return is_npy(beginning) ? 1 : image_module(path).count(path, max_resident_bytes);
}

bool holds_pages(const std::string& path) {
  return is_tiff_extension(extension_of(path));
}

bool holds_opacity(const std::string& path) {
  const std::string extension = extension_of(path);
  return extension.empty() || traits_of(path, extension).opacity;
}

std::vector<std::string_view> compressions_of(std::string_view extension) {
  if (is_tiff_extension(extension)) return {"none", "lzw", "zip", "packbits", "jpeg"};
  if (extension == "png") return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  if (extension == "webp") return {"lossless"};
  return {};
}

std::unique_ptr<ImageWriter> create_image(const std::string& path, const ImageInfo& like, const WriteOptions& options) {
  check_names_a_file(path);
  const std::string extension = extension_of(path);
  if (extension.empty())
    throw bad_input(fmt::format("the output {} has no extension to name its format; add one, such as .png", path));
  const FormatTraits traits = traits_of(path, extension);
  check_options(path, extension, options);
  ImageInfo stored = like;
  const bool turn = like.orientation >= 2 && like.orientation <= 8 && !traits.orientation;
  if (turn) stored = upright(stored);
  const bool divide = like.alpha_channel >= 0 && like.associated_alpha && traits.alpha_apart &&
                      (like.type == DataType::u8 || like.type == DataType::u16);
  if (divide) stored.associated_alpha = false;
  auto writer = create_as_it_is(path, extension, stored, options);
  stored.associated_alpha = like.associated_alpha;
  if (divide) writer = make_alpha_apart_writer(std::move(writer), stored);
  if (turn) writer = make_upright_writer(std::move(writer), like, path);
  return writer;
}

}  // namespace omniconv::image
