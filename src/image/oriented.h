// Writes upright what is stored turned or mirrored.
#pragma once

#include <memory>
#include <string>

#include "image/image.h"

namespace omniconv::image {

// Extents of the upright image; its orientation is 1.
ImageInfo upright(const ImageInfo& stored);

// Takes the rows of `stored` and writes upright(stored) with `upright_writer` at finish(). Holds the image whole, from
// the first row on.
std::unique_ptr<ImageWriter> make_upright_writer(std::unique_ptr<ImageWriter> upright_writer, const ImageInfo& stored,
                                                 const std::string& path);

}  // namespace omniconv::image
