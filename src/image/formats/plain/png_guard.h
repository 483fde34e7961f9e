// libpng's errors, which are kept from the terminal and end no process.
#pragma once

#include <png.h>

#include <csetjmp>
#include <string>

namespace omniconv::image::plain {

// libpng leaves an error by a jump: no object with a destructor may stand between guarded() and a call of libpng.
class PngGuard {
 public:
  PngGuard() = default;
  PngGuard(const PngGuard&) = delete;
  PngGuard& operator=(const PngGuard&) = delete;

  // For reading; under the guard.
  png_structp make() { return png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &give_up, &note); }
  // False when libpng gave up.
  template <typename Call>
  bool guarded(const Call& call) {
    if (setjmp(escape_) != 0) return false;
    call();
    return true;
  }
  // That libpng passed something over.
  bool has_warned() const { return has_warned_; }
  // Why it gave up, in one line; empty if it has not.
  std::string complaint() const;

 private:
  [[noreturn]] static void give_up(png_structp png, png_const_charp reason);
  static void note(png_structp png, png_const_charp reason);

  std::jmp_buf escape_{};
  char complaint_[256] = "";
  bool has_warned_ = false;
};

}  // namespace omniconv::image::plain
