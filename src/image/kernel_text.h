// Kernels as users give them: by name, from a file, or literal (docs/cli.md).
#pragma once

#include <cstdint>
#include <string_view>

#include "operations/filter2d/kernels.h"

namespace omniconv::image {

inline constexpr std::int64_t largest_kernel_file = 64 * 1024 * 1024;  // bytes

// "gaussian:9,1.5", "@file" or "3x3: 0,-1,0, ...". Throws bad_input with file, line and column where there are any.
Kernel parse_kernel(std::string_view text);
// The text of a kernel file (matrix, CSV, ImageMagick form) or the bytes of a .npy array; `source` names it in errors.
Kernel parse_kernel_file(std::string_view content, std::string_view source);

}  // namespace omniconv::image
