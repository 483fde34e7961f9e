// libtiff's handle of a file that we read or write ourselves, and its complaints, which are kept from the terminal.
#pragma once

#include <tiffio.h>

#include <cstdint>
#include <string>

namespace omniconv::image::plain {

// How libtiff reaches the file. Neither function may throw.
class TiffBytes {
 public:
  virtual ~TiffBytes() = default;
  virtual std::int64_t read(void* to, std::int64_t bytes, std::int64_t offset) noexcept = 0;
  virtual std::int64_t write(const void* from, std::int64_t bytes, std::int64_t offset) noexcept = 0;
  virtual std::int64_t size() const noexcept = 0;
};

class TiffHandle {
 public:
  // `mode` as TIFFOpen() takes it. What libtiff refuses to open leaves get() at nullptr.
  TiffHandle(TiffBytes& bytes, const std::string& path, const char* mode);
  ~TiffHandle() { close(); }
  TiffHandle(const TiffHandle&) = delete;
  TiffHandle& operator=(const TiffHandle&) = delete;

  TIFF* get() const { return tiff_; }
  void close();
  // The first error since the last call, in one line; empty if there was none.
  std::string take_error();

 private:
  struct Callbacks;

  TiffBytes& bytes_;
  std::int64_t position_ = 0;
  TIFF* tiff_ = nullptr;
  std::string error_;
};

}  // namespace omniconv::image::plain
