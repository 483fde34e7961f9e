// Writes colours that are multiplied by opacity into formats that keep the two apart.
#pragma once

#include <memory>

#include "image/image.h"

namespace omniconv::image {

// Takes rows of `associated` (u8 or u16, info.associated_alpha) and hands on colour * white / opacity, rounded and at
// most white; where opacity is 0, the colour as it is.
std::unique_ptr<ImageWriter> make_alpha_apart_writer(std::unique_ptr<ImageWriter> writer, const ImageInfo& associated);

}  // namespace omniconv::image
