// Images of any format and size, as a network takes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omniconv/model.h"

namespace omniconv::training {

// Its colours as bytes, c x h x w: made as large as `shape`, grey (Rec. 601) for one channel, three alike of one, and
// rounded to 255 steps; opacity is left away. It is read a row at a time. Throws with the file's name.
std::vector<std::uint8_t> read_picture(const std::string& path, const ModelShape& shape);

}  // namespace omniconv::training
