// Device text that several solvers share, to be put before their own.
#pragma once

#include <string_view>

namespace omniconv::kernels {

// Types of pixels, borders and index maps of the filter2d kernels; its constants are listed at its top.
std::string_view filter2d_pixels();

// Strips of rows, several elements a work item, for direct and separable filtering; follows filter2d_pixels.
std::string_view filter2d_strips();

// divide(n, d): the fp32 quotient rounded to nearest even, whatever the device's own division rounds to.
std::string_view exact_division();

}  // namespace omniconv::kernels
