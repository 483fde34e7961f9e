// A file read by position, whose size is known before anything is believed of what it says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace omniconv::image {

class InputFile {
 public:
  // Throws bad_input when `path` cannot be read or is no regular file.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  // Exactly `bytes` bytes from `offset`; throws when the file does not have them (any more).
  void read_at(std::int64_t offset, void* to, std::int64_t bytes) const;
  // `bytes` bytes from `offset`, or as many as there are.
  std::vector<std::byte> read_some(std::int64_t offset, std::int64_t bytes) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

// One byte after another.
class ByteReader {
 public:
  ByteReader(const InputFile& file, std::int64_t offset, std::int64_t buffer_bytes);

  // The next byte, or -1 at the end of the file.
  int next() {
    if (position_ == filled_ && !fill()) return -1;
    return static_cast<int>(buffer_[position_++]);
  }
  // Where in the file the next byte stands.
  std::int64_t offset() const { return buffer_offset_ + static_cast<std::int64_t>(position_); }

 private:
  bool fill();

  const InputFile* file_;
  std::vector<std::byte> buffer_;
  std::int64_t buffer_bytes_;
  std::int64_t buffer_offset_;
  std::size_t position_ = 0, filled_ = 0;
};

}  // namespace omniconv::image
