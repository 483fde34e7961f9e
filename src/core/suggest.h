// The nearest names, for messages about unknown ones.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace omniconv {

// "did you mean A or B?", or "known are: A, B, C" when nothing is near. `names` is not empty.
std::string suggest(std::string_view unknown, std::span<const std::string_view> names);

}  // namespace omniconv
