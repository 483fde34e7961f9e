// A file that appears whole or not at all.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace omniconv::image {

// Throws bad_input when `path` is empty, or is a folder, a device or a pipe.
void check_names_a_file(const std::string& path);

// Where the data are until commit().
enum class Temporary {
  unnamed_if_possible,  // in a file without a name, which ends with the process, however that ends
  named                 // in the target's folder; left there by a process that is killed
};

// Writes a temporary file on the target's file system; commit() puts it in the target's place. Where the target is a
// symbolic link, the file it names is replaced and the link stays. An existing file's mode is kept, and its owner and
// group where this user may give them. Without commit(), and after any error, the destructor leaves the folder as it
// was.
class AtomicFile {
 public:
  // Throws bad_input when the target could not be replaced later: its folder is missing or not writable, or the target
  // is a folder, a device, or write-protected.
  explicit AtomicFile(const std::string& path, Temporary temporary = Temporary::unnamed_if_possible);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }
  // Sets disk space aside where the file system can, so that a full disk is found before the work is done.
  void reserve(std::int64_t bytes);
  void write_at(std::int64_t offset, const void* from, std::int64_t bytes);
  // What to open for those who write by name, within this process; adopt() then takes over what they wrote.
  std::string temporary_path() const;
  void adopt();
  void read_at(std::int64_t offset, void* to, std::int64_t bytes) const;
  // Throws, and leaves the target as it was, unless every byte is safely stored.
  void commit();
  // commit() in two steps, for several files: none need appear before all are stored.
  void store();
  void place();

 private:
  void open_named();
  void open_unnamed();
  std::string new_name() const;
  // Each returns 0 or an errno.
  int synchronise();
  int put_in_place();
  int link_under_a_new_name();
  // Of the file without a name: the name by which this process can still reach it.
  std::string own_path() const;
  void keep(const struct stat& replaced);
  void require(int error);  // 0
  void close_and_remove() noexcept;

  std::string path_, target_;
  std::string temporary_;  // empty while the file has no name
  int descriptor_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace omniconv::image
