#include "image/formats/plain/png_guard.h"

#include <cstring>

#include "core/quoted.h"

namespace omniconv::image::plain {

void PngGuard::give_up(png_structp png, png_const_charp reason) {
  auto* const guard = static_cast<PngGuard*>(png_get_error_ptr(png));
  std::strncpy(guard->complaint_, reason, sizeof guard->complaint_ - 1);
  std::longjmp(guard->escape_, 1);
}

void PngGuard::note(png_structp png, png_const_charp) {
  static_cast<PngGuard*>(png_get_error_ptr(png))->has_warned_ = true;
}

std::string PngGuard::complaint() const {
  return one_line(complaint_);
}

}  // namespace omniconv::image::plain
