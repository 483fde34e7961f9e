#include "kernels/device_text.h"

#include "embedded/filter2d_pixels.kernel.h"

namespace omniconv::kernels {

std::string_view filter2d_pixels() {
  return filter2d_pixels_kernel;
}

}  // namespace omniconv::kernels
