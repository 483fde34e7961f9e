#include "kernels/device_text.h"

#include "embedded/exact_division.kernel.h"
#include "embedded/filter2d_pixels.kernel.h"
#include "embedded/filter2d_strips.kernel.h"

namespace omniconv::kernels {

std::string_view filter2d_pixels() {
  return filter2d_pixels_kernel;
}

std::string_view filter2d_strips() {
  return filter2d_strips_kernel;
}

std::string_view exact_division() {
  return exact_division_kernel;
}

}  // namespace omniconv::kernels
