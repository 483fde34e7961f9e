#include "image/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "omniconv/error.h"

namespace omniconv::image {

InputFile::InputFile(const std::string& path) : path_(path) {
  if (path.empty()) throw bad_input("the name of the input file is empty");
  // Without O_NONBLOCK, opening a pipe would wait for its writer before we could refuse it.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw bad_input(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  struct stat status {};
  std::string reason;
  if (::fstat(descriptor_, &status) != 0)
    reason = fmt::format("cannot read {}: {}", path, std::strerror(errno));
  else if (S_ISDIR(status.st_mode))
    reason = fmt::format("{} is a folder; name a file in it", path);
  else if (!S_ISREG(status.st_mode))
    reason = fmt::format("{} is a pipe or a device; images are read from regular files, so save it as one first", path);
  else if (status.st_size == 0)
    reason = fmt::format("{} is empty", path);
  if (!reason.empty()) {
    ::close(descriptor_);
    throw bad_input(reason);
  }
  size_ = status.st_size;
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read_at(std::int64_t offset, void* to, std::int64_t bytes) const {
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, out, static_cast<std::size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw environment_error(fmt::format("cannot read {}: {}", path_, std::strerror(errno)));
    if (got == 0)
      throw bad_input(fmt::format("{} ends at byte {}, but {} more are needed there", path_, offset, bytes));
    out += got;
    offset += got;
    bytes -= got;
  }
}

std::vector<std::byte> InputFile::read_some(std::int64_t offset, std::int64_t bytes) const {
  const std::int64_t there = std::clamp<std::int64_t>(size_ - offset, 0, bytes);
  std::vector<std::byte> result(static_cast<std::size_t>(there));
  read_at(offset, result.data(), there);
  return result;
}

ByteReader::ByteReader(const InputFile& file, std::int64_t offset, std::int64_t buffer_bytes)
    : file_(&file), buffer_bytes_(buffer_bytes), buffer_offset_(offset) {}

bool ByteReader::fill() {
  buffer_offset_ += static_cast<std::int64_t>(filled_);
  buffer_ = file_->read_some(buffer_offset_, buffer_bytes_);
  position_ = 0;
  filled_ = buffer_.size();
  return filled_ > 0;
}

}  // namespace omniconv::image
