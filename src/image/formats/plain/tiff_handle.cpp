#include "image/formats/plain/tiff_handle.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "core/quoted.h"

namespace omniconv::image::plain {

struct TiffHandle::Callbacks {
  static TiffHandle& self(thandle_t handle) { return *static_cast<TiffHandle*>(handle); }

  static tmsize_t read(thandle_t handle, void* to, tmsize_t bytes) {
    TiffHandle& file = self(handle);
    const std::int64_t got = file.bytes_.read(to, bytes, file.position_);
    file.position_ += got;
    return got;
  }
  static tmsize_t write(thandle_t handle, void* from, tmsize_t bytes) {
    TiffHandle& file = self(handle);
    const std::int64_t put = file.bytes_.write(from, bytes, file.position_);
    file.position_ += put;
    return put;
  }
  static toff_t seek(thandle_t handle, toff_t offset, int origin) {
    TiffHandle& file = self(handle);
    const auto by = static_cast<std::int64_t>(offset);
    file.position_ = origin == SEEK_SET ? by : by + (origin == SEEK_CUR ? file.position_ : file.bytes_.size());
    return static_cast<toff_t>(file.position_);
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return static_cast<toff_t>(self(handle).bytes_.size()); }

  // Nothing but 1 keeps libtiff from printing.
  static int error(TIFF*, void* user, const char*, const char* format, va_list arguments) {
    char text[512];
    std::vsnprintf(text, sizeof text, format, arguments);
    std::string& kept = static_cast<TiffHandle*>(user)->error_;
    if (kept.empty()) kept = one_line(text);
    return 1;
  }
  static int warning(TIFF*, void*, const char*, const char*, va_list) { return 1; }
};

TiffHandle::TiffHandle(TiffBytes& bytes, const std::string& path, const char* mode) : bytes_(bytes) {
  TIFFOpenOptions* const options = TIFFOpenOptionsAlloc();
  if (options == nullptr) return;
  TIFFOpenOptionsSetErrorHandlerExtR(options, &Callbacks::error, this);
  TIFFOpenOptionsSetWarningHandlerExtR(options, &Callbacks::warning, this);
  tiff_ = TIFFClientOpenExt(path.c_str(), mode, this, &Callbacks::read, &Callbacks::write, &Callbacks::seek,
                            &Callbacks::close, &Callbacks::size, nullptr, nullptr, options);
  TIFFOpenOptionsFree(options);
}

void TiffHandle::close() {
  if (tiff_ != nullptr) TIFFClose(std::exchange(tiff_, nullptr));
}

std::string TiffHandle::take_error() {
  return std::exchange(error_, std::string());
}

}  // namespace omniconv::image::plain
