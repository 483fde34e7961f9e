// What a codec writes through, so that none can lose an error of the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "image/atomic_file.h"

namespace omniconv::image {

// Gathers small writes. Codecs learn of no error: the first is kept, what follows is thrown away, and the writer asks
// after each call. (libjpeg would end the process, and exceptions must not pass through code written in C.)
class CodecFile {
 public:
  explicit CodecFile(AtomicFile& file) : file_(file) {}

  void put(const void* bytes, std::size_t size, std::int64_t offset);
  // How many of `size` bytes were there to be read.
  std::size_t get(void* bytes, std::size_t size, std::int64_t offset);
  std::int64_t size() const { return size_; }

  // Writes what is still held; throws the first error of all calls.
  void settle();
  void check() const;
  // From here on everything is thrown away.
  void abandon();

 private:
  static constexpr std::size_t buffer_bytes = 1 << 18;

  void flush_buffer();
  void store(const void* bytes, std::size_t size, std::int64_t offset);

  AtomicFile& file_;
  std::vector<std::byte> buffer_;
  std::int64_t buffer_offset_ = 0, size_ = 0;
  std::string failure_;
};

}  // namespace omniconv::image
