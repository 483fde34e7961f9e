// libjpeg's errors, which are kept from the terminal and end no process.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h wants it, and size_t
#include <string>

#include <jpeglib.h>

namespace omniconv::image::plain {

// libjpeg leaves an error by a jump: no object with a destructor may stand between guarded() and a call of libjpeg.
class JpegGuard {
 public:
  JpegGuard();
  JpegGuard(const JpegGuard&) = delete;
  JpegGuard& operator=(const JpegGuard&) = delete;

  jpeg_error_mgr* handlers() { return &handlers_.base; }
  // False when libjpeg gave up.
  template <typename Call>
  bool guarded(const Call& call) {
    if (setjmp(handlers_.escape) != 0) return false;
    call();
    return true;
  }
  // The first error or warning, in one line; empty if there was none. A warning means that libjpeg made up what it did
  // not find.
  std::string complaint() const;

 private:
  struct Handlers {
    jpeg_error_mgr base{};
    std::jmp_buf escape{};
    char complaint[JMSG_LENGTH_MAX] = "";
  };
  static void note(j_common_ptr codec, int level);
  static void give_up(j_common_ptr codec);

  Handlers handlers_;
};

}  // namespace omniconv::image::plain
