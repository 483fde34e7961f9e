// Inside the module that speaks to OpenImageIO.
#pragma once

#include <OpenImageIO/imageio.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "image/formats/module.h"
#include "image/image.h"
#include "image/input_file.h"
#include "omniconv/error.h"

namespace omniconv::image::oiio {

// Everything that a file said beside its pixels.
class SpecMetadata final : public Metadata {
 public:
  SpecMetadata(std::string plugin, OIIO::ImageSpec spec) : plugin_(std::move(plugin)), spec_(std::move(spec)) {}
  const std::string& plugin() const { return plugin_; }
  const OIIO::ImageSpec& spec() const { return spec_; }

 private:
  std::string plugin_;
  OIIO::ImageSpec spec_;
};

// OpenImageIO's name for the format of the file, by its content. Throws for what is not read.
std::string plugin_of(const InputFile& file);

// From a file's own first bytes: what its decoder holds, where OpenImageIO decodes (or allocates) when it opens the
// file and could no longer be asked; else 0. Of a damaged header too: opening then names the damage.
std::int64_t bytes_held_by_opening(const InputFile& file, const std::string& plugin);
// False for a TIFF page that leaves the number of bits to its default, 1, which OpenImageIO 2.4 takes for 8. True where
// the file is too damaged to say.
bool tiff_says_bits_per_sample(const InputFile& file, int page_index);

enum class Alpha { none, apart, multiplied, either };

// A format that is written. All of it was found by writing and reading back, with OpenImageIO 2.4, which takes any type
// and converts silently, and drops an orientation without a word.
struct Format {
  std::string_view plugin;
  std::vector<std::string_view> extensions;
  std::vector<DataType> types;
  std::vector<std::int64_t> channels;  // empty: any number
  Alpha alpha;
  bool orientation;                     // is stored, and read back
  std::int64_t min_extent, max_extent;  // rows or columns; 0: no limit of its own
  bool counts_in_32_bits;               // the bytes of the file
  std::int64_t bytes_per_byte;          // what the encoder holds, for each byte of pixels
};
// By the extension of `path`; throws for what is not written.
const Format& format_of(const std::string& path);
// Throws when the format cannot hold such an image.
void check_format(const Format& format, const std::string& path, const ImageInfo& info, const WriteOptions& options);
// What OpenImageIO is told, with all that is kept of the input's description.
OIIO::ImageSpec spec_of(const Format& format, const ImageInfo& like, const WriteOptions& options);
bool has_exif(const OIIO::ImageSpec& spec);

// WebP, by libwebp itself: OpenImageIO multiplies its colours by opacity and has no profiles. The page as in open().
int count_frames_of_webp(const std::string& path, std::int64_t max_resident_bytes);
std::unique_ptr<ImageReader> open_webp(const std::string& path, int page, std::int64_t max_resident_bytes);
// What spec_of() gives goes with the pixels.
std::unique_ptr<ImageWriter> create_webp(const std::string& path, const Format& format, const ImageInfo& like,
                                         const WriteOptions& options);
// A JPEG 2000 file with the colour profile instead of its colour space by number.
std::string with_profile(const std::string& jp2, std::string_view profile);
// The spec's, or nothing.
std::string_view profile_of(const OIIO::ImageSpec& spec);

// EXIF's number of it, from 1 to 8; 1 where the spec has none, or none that EXIF knows.
int orientation_of(const OIIO::ImageSpec& spec);

// Throws for a file whose decoder holds more bytes than `limit`.
void check_limit(const std::string& path, std::string_view plugin, std::int64_t bytes, std::int64_t limit);
// The error of a file with several pages of which none was chosen, or of a page that is not there.
Error no_such_page(const std::string& path, int page, int pages);

std::unique_ptr<ImageReader> open(const std::string& path, int page, std::int64_t max_resident_bytes);
std::unique_ptr<ImageWriter> create(const std::string& path, const ImageInfo& like, const WriteOptions& options);
std::shared_ptr<const Metadata> describe(const std::string& path);
int count(const std::string& path, std::int64_t max_resident_bytes);
FormatTraits traits(const std::string& path);

}  // namespace omniconv::image::oiio
