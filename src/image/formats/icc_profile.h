// Colour profiles as ICC.1 describes them.
#pragma once

#include <cstdint>
#include <string_view>

namespace omniconv::image {

// Whether the profile is what ICC.1 asks for, and for so many channels; libpng refuses the whole image for one that is
// not.
bool is_valid_profile(std::string_view profile, std::int64_t channels);

}  // namespace omniconv::image
