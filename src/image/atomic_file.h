// A file that appears whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace omniconv::image {

// Writes a temporary file in the target's folder; commit() renames it over the target. Where the target is a symbolic
// link, the file it names is replaced and the link stays. An existing file's mode is kept. Without commit(), and after
// any error, the destructor leaves the folder as it was.
class AtomicFile {
 public:
  // Throws bad_input when the target could not be replaced later: its folder is missing or not writable, or the target
  // is a folder, a device, or write-protected.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  // Sets disk space aside where the file system can, so that a full disk is found before the work is done.
  void reserve(std::int64_t bytes);
  void write_at(std::int64_t offset, const void* from, std::int64_t bytes);
  // Where to write for those who write by name; adopt() then takes over what they wrote.
  const std::string& temporary_path() const { return temporary_; }
  void adopt();
  void read_at(std::int64_t offset, void* to, std::int64_t bytes) const;
  // Throws, and leaves the target as it was, unless every byte is safely stored.
  void commit();

 private:
  void close_and_remove() noexcept;

  std::string path_, target_, temporary_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace omniconv::image
