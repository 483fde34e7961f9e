// Images whose rows lie in the file as in memory, but for the order of bytes and of rows: PNM, PAM, PFM and .npy.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "image/image.h"
#include "image/input_file.h"

namespace omniconv::image {

struct RasterLayout {
  std::int64_t offset = 0;  // of the first byte of pixels
  bool swapped = false;     // elements are not in this machine's byte order
  bool bottom_up = false;
};

// h * w * c * size_of(type) of `info`, each extent at least 1; throws when an extent is not, or the product overflows.
std::int64_t raster_bytes(const ImageInfo& info, std::string_view source);
inline std::int64_t row_bytes(const ImageInfo& info) {
  return info.w * info.c * size_of(info.type);
}

// Throws unless the rows asked for exist.
void check_rows(const ImageInfo& info, std::int64_t first, std::int64_t count, std::string_view source);

// For writers: throws unless `first` is the row that follows those written; unless all rows were.
void check_next_row(std::int64_t first, std::int64_t written, std::string_view path);
void check_complete(std::int64_t written, std::int64_t h, std::string_view path);

// Throws when the file is too short for the pixels that `info` declares. Values above info.max_value (where it is not
// 0) are refused as they are read.
std::unique_ptr<ImageReader> make_raster_reader(std::shared_ptr<const InputFile> file, const ImageInfo& info,
                                                const RasterLayout& layout);

// `header` stands before the pixels; layout.offset is taken from it. Values above info.max_value (where it is not 0)
// become it.
std::unique_ptr<ImageWriter> make_raster_writer(const std::string& path, const ImageInfo& info, std::string_view header,
                                                RasterLayout layout);

}  // namespace omniconv::image
