// Images without their opacity channel.
#pragma once

#include <memory>

#include "image/image.h"

namespace omniconv::image {

// Whether opacity is full in every pixel. Reads the image once.
bool is_opaque(ImageReader& reader);

// The same image without its opacity channel, colours as they are stored. `reader` has one, and others beside it.
std::unique_ptr<ImageReader> drop_opacity(std::unique_ptr<ImageReader> reader);

}  // namespace omniconv::image
