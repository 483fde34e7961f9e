#include "image/formats/codec_file.h"

#include <algorithm>

#include "omniconv/error.h"

namespace omniconv::image {

void CodecFile::put(const void* bytes, std::size_t size, std::int64_t offset) {
  size_ = std::max(size_, offset + static_cast<std::int64_t>(size));
  if (offset != buffer_offset_ + static_cast<std::int64_t>(buffer_.size()) || buffer_.size() + size > buffer_bytes)
    flush_buffer();
  if (size > buffer_bytes) return store(bytes, size, offset);
  if (buffer_.empty()) buffer_offset_ = offset;
  const auto* const begin = static_cast<const std::byte*>(bytes);
  buffer_.insert(buffer_.end(), begin, begin + size);
}

std::size_t CodecFile::get(void* bytes, std::size_t size, std::int64_t offset) {
  flush_buffer();
  if (!failure_.empty() || offset >= size_) return 0;
  const auto there = std::min<std::int64_t>(static_cast<std::int64_t>(size), size_ - offset);
  try {
    file_.read_at(offset, bytes, there);
  } catch (const Error& error) {
    failure_ = error.what();
    return 0;
  }
  return static_cast<std::size_t>(there);
}

void CodecFile::settle() {
  flush_buffer();
  check();
}

void CodecFile::check() const {
  if (!failure_.empty()) throw bad_input(failure_);
}

void CodecFile::abandon() {
  if (failure_.empty()) failure_ = "abandoned";
}

void CodecFile::flush_buffer() {
  if (!buffer_.empty()) store(buffer_.data(), buffer_.size(), buffer_offset_);
  buffer_.clear();
}

void CodecFile::store(const void* bytes, std::size_t size, std::int64_t offset) {
  if (!failure_.empty()) return;
  try {
    file_.write_at(offset, bytes, static_cast<std::int64_t>(size));
  } catch (const Error& error) {
    failure_ = error.what();
  }
}

}  // namespace omniconv::image
