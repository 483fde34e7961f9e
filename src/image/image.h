// Images as files, read and written in strips of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/types.h"

namespace omniconv::image {

// What a format keeps beside pixels (ICC profile, Exif, resolution); made by one module and understood by it alone.
class Metadata {
 public:
  virtual ~Metadata() = default;
  // The file, where another module than the one that made this can read all of it for itself; else empty.
  virtual std::string source() const { return {}; }
};

struct ImageInfo {
  std::int64_t h = 0, w = 0, c = 1;  // stored extents, before any orientation
  DataType type = DataType::u8;
  std::string format;             // pnm, pam, npy, png, jpeg, tiff, ...
  int alpha_channel = -1;         // or the channel that holds opacity
  bool associated_alpha = false;  // the stored colours are already multiplied by opacity
  double max_value = 0;  // white of an integer image where it is not the type's highest value (PNM, PAM); else 0
  int orientation = 1;   // Exif: 1 upright .. 8
  // Of a TIFF image: its first channels that are colours, 1 for grey or 3 for RGB, the others being none; 0: as many as
  // the number of channels suggests.
  int color_channels = 0;
  // Of a TIFF image: the word of compressions_of("tif") for its own compression where that keeps every bit, else zip.
  std::string compression;
  std::int64_t resident_bytes =
      0;  // what reading (or writing) holds beside the caller's rows, whole-image decoders included
  std::shared_ptr<const Metadata> metadata;
};

// Reads rows of one image. Not thread-safe.
class ImageReader {
 public:
  virtual ~ImageReader() = default;
  virtual const ImageInfo& info() const = 0;
  // Rows [first, first + count), packed c-interleaved elements of info().type in native byte order, `stride_bytes`
  // apart. Ascending calls stream; a call that goes back starts the file again. Throws when a row is damaged or
  // missing.
  virtual void read_rows(std::int64_t first, std::int64_t count, std::byte* to, std::int64_t stride_bytes) = 0;
};

// Writes each row once, ascending. The file appears, whole, at finish(); without finish() nothing appears.
class ImageWriter {
 public:
  virtual ~ImageWriter() = default;
  // What writing holds beside the caller's rows.
  virtual std::int64_t resident_bytes() const = 0;
  virtual void write_rows(std::int64_t first, std::int64_t count, const std::byte* from, std::int64_t stride_bytes) = 0;
  virtual void finish() = 0;
};

class PagedOutput;

// How pixels are stored. What the format has not is refused, and what it has is named.
struct WriteOptions {
  int threads = 1;  // for formats that are compressed in pieces (PNG); the file is the same for any number
  int quality = 0;  // 1 to 100 of .jpg, .webp, and TIFF's compression jpeg; 0: 95
  // A word of compressions_of(); empty: that of an input of the same format that kept every bit, zip for a TIFF file
  // whose pixels come from another, none for a new TIFF file, 6 for PNG, with loss for WebP.
  std::string compression = {};
  PagedOutput* pages = nullptr;  // the file that the image is the next page of, where the format holds_pages()
};
// The compressions that a format can be asked for, by its extension in lower case and without its dot.
std::vector<std::string_view> compressions_of(std::string_view extension);

// Decides by content, not by name. `page` counts from 1; 0 asks for the only page and refuses files with several.
// A file whose decoder would hold more than `max_resident_bytes` is refused, and the number named, before it is
// decoded.
std::unique_ptr<ImageReader> open_image(const std::string& path, int page = 0,
                                        std::int64_t max_resident_bytes = std::numeric_limits<std::int64_t>::max());

// How many images a file holds, by its content; memory as in open_image().
int count_images(const std::string& path, std::int64_t max_resident_bytes = std::numeric_limits<std::int64_t>::max());

// Whether the format that the extension of `path` names can hold an opacity channel; where it names none, true. Whether
// its files are written with several images.
bool holds_opacity(const std::string& path);
bool holds_pages(const std::string& path);

// The format is decided by the extension of `path`. `like` gives extents, type and what to keep; nothing is written to
// `path` itself before finish(). Throws when the format cannot hold it, naming the depths (or channels) it can hold.
// Where the format cannot store like.orientation, the writer rotates the pixels (and holds the image whole to do so).
std::unique_ptr<ImageWriter> create_image(const std::string& path, const ImageInfo& like,
                                          const WriteOptions& options = {});

}  // namespace omniconv::image
