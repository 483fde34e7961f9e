// A file of several images.
#pragma once

#include <string>

#include "image/atomic_file.h"

namespace omniconv::image {

// Images are written to it one after another, as its pages; it appears, whole, with the last of them.
class PagedOutput {
 public:
  PagedOutput(const std::string& path, int pages) : file_(path), pages_(pages) {}

  AtomicFile& file() { return file_; }
  int pages() const { return pages_; }
  int finished() const { return finished_; }
  void finish_page() {
    if (++finished_ == pages_) file_.commit();
  }

 private:
  AtomicFile file_;
  int pages_, finished_ = 0;
};

}  // namespace omniconv::image
