// What WriteOptions ask of an encoder, defaults included.
#pragma once

#include <string>

#include "image/image.h"

namespace omniconv::image {

inline int quality_of(const WriteOptions& options) {
  return options.quality > 0 ? options.quality : 95;
}

// A word of compressions_of("tif").
inline std::string tiff_compression(const ImageInfo& like, const WriteOptions& options) {
  if (!options.compression.empty()) return options.compression;
  return like.compression.empty() ? "none" : like.compression;
}

}  // namespace omniconv::image
