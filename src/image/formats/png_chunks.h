// What can be known of a PNG file (https://www.w3.org/TR/png-3/) before libpng sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "image/input_file.h"

namespace omniconv::image {

struct PngHeader {
  std::uint32_t w = 0, h = 0;
  int bits = 0, color = 0;  // of a sample; PNG's colour type
  int compression = 0, filter = 0, interlacing = 0;
};
PngHeader png_header(const InputFile& file);

struct PngChunk {
  std::int64_t begin = 0;    // in the file; four bytes of length and four of kind stand before the data
  std::uint32_t length = 0;  // of the data, behind which stand four bytes of checksum
  std::string kind;
};

// The chunks from the header to IEND.
class PngChunks {
 public:
  explicit PngChunks(const InputFile& file);
  // Nothing behind IEND. Throws unless the first is a header that PNG allows, each is there and has the right checksum,
  // and IEND is among them. Reads each chunk once.
  std::optional<PngChunk> next();

 private:
  const InputFile& file_;
  std::int64_t at_;
  bool is_at_end_ = false;
};

// Throws as PngChunks does, for all of the file.
void check_png(const InputFile& file);
// How many frames an animated PNG file says that it has; 1 for any other. After check_png().
std::int64_t frames_of_png(const InputFile& file);
// The Exif block that stands behind the pixels; empty where there is none, or one before them. After check_png().
std::string exif_behind_pixels(const InputFile& file);

}  // namespace omniconv::image
