// Inside the module for plain PNG, TIFF and JPEG files: those that the commonest programs write, described by so little
// that all of it can be kept. Whatever is not plain, damage included, is left to the module that speaks to OpenImageIO;
// every function below that returns a pointer or an optional returns nothing for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "image/image.h"
#include "image/input_file.h"

namespace omniconv::image::plain {

enum class Unit { unsaid, none, inch, centimetre };
struct Resolution {
  float x = 0, y = 0;  // pixels for each unit
  Unit unit = Unit::unsaid;
  bool operator==(const Resolution&) const = default;
};

// How the colour of a JPEG file is halved: the sampling factors of its first component, the others having 1.
struct Subsampling {
  int across = 1, down = 1;
};

// Everything that a plain file says beside its pixels and is kept.
class PlainMetadata final : public Metadata {
 public:
  std::string source() const override { return path; }
  // There is nothing that a file of another format would have to say, too.
  bool is_bare() const { return profile.empty() && texts.empty() && !resolution && !has_exif && !says_more; }

  std::string path, format;
  std::int64_t channels = 0;
  std::string profile;  // ICC
  std::optional<Resolution> resolution;
  std::vector<std::pair<std::uint32_t, std::string>> texts;  // TIFF tags and what they say
  Subsampling subsampling;                                   // JPEG's
  bool has_exif = false;                                     // JPEG's exif_block() that says something
  // PNG's: chunks as they stand in the file, but for bKGD, whose colour is one of `type`.
  std::string chunks, background;
  DataType type = DataType::u8;
  bool says_more = false;  // than that the pixels are sRGB
};
// The metadata that a file of `format` keeps of `like`, which may be none. `keeps` is set to false where there is more
// than that.
const PlainMetadata* metadata_for(const ImageInfo& like, const std::string& format, bool& keeps);
// OpenImageIO takes for sRGB what a JPEG file holds, and what a bare PNG file does.
bool is_srgb(const ImageInfo& like);

// The one page of a plain TIFF file.
struct TiffPage {
  ImageInfo info;
  int compression = 1, predictor = 1;
  bool swapped = false;           // elements are not in this machine's byte order
  std::int64_t tile_width = 0;    // 0: strips
  std::int64_t block_height = 0;  // rows of a strip or of a tile
  std::int64_t largest_block = 0;
  std::vector<std::int64_t> offsets;  // of strips or tiles
};
// All that the file's directory says, and that its pixels are there.
std::optional<TiffPage> plain_tiff(const InputFile& file);

// What a plain PNG file says; its pixels may still be damaged.
std::shared_ptr<PlainMetadata> plain_png(const InputFile& file);

// The Exif block that OpenImageIO writes into a JPEG file: that colours are sRGB, the resolution that there may be, and
// the versions that the standard asks for; or nothing.
std::string exif_block(bool is_srgb, const std::optional<Resolution>& resolution);

std::unique_ptr<ImageReader> open_tiff(std::shared_ptr<const InputFile> file, std::int64_t max_resident_bytes);
std::unique_ptr<ImageReader> open_jpeg(std::shared_ptr<const InputFile> file);
std::unique_ptr<ImageReader> open_png(std::shared_ptr<const InputFile> file);
std::unique_ptr<ImageWriter> create_tiff(const std::string& path, const ImageInfo& like, const WriteOptions& options);
std::unique_ptr<ImageWriter> create_jpeg(const std::string& path, const ImageInfo& like, const WriteOptions& options);
std::unique_ptr<ImageWriter> create_png(const std::string& path, const ImageInfo& like, const WriteOptions& options);

}  // namespace omniconv::image::plain
