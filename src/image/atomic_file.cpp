#include "image/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>

#include "omniconv/error.h"

namespace omniconv::image {
namespace {

Error cannot_write(const std::string& path, int error) {
  const char* mend = error == ENOSPC || error == EDQUOT ? "; free some space or write elsewhere" : "";
  return bad_input(fmt::format("cannot write {}: {}{}", path, std::strerror(error), mend));
}

// The file that a write to `path` would reach: the end of its chain of links, which need not exist.
std::filesystem::path resolve_links(const std::string& path) {
  std::filesystem::path current = path;
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(current, error);
    // No link, nothing yet, or nothing that can be (which is said later).
    if (error == std::errc::invalid_argument || error == std::errc::no_such_file_or_directory ||
        error == std::errc::not_a_directory)
      return current;
    if (error) throw cannot_write(path, error.value());
    current = next.is_absolute() ? next : current.parent_path() / next;
  }
  throw bad_input(fmt::format("cannot write {}: {}", path, std::strerror(ELOOP)));
}

std::string random_suffix() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace

void check_names_a_file(const std::string& path) {
  if (path.empty()) throw bad_input("the name of the output file is empty");
  struct stat status {};
  const bool is_there = ::stat(path.c_str(), &status) == 0;
  if (path.back() == '/' || (is_there && S_ISDIR(status.st_mode)))
    throw bad_input(fmt::format("cannot write {}: it is a folder; name a file in it", path));
  if (is_there && !S_ISREG(status.st_mode))
    throw bad_input(
        fmt::format("cannot write {}: it is a device or a pipe; results are written to regular files", path));
}

AtomicFile::AtomicFile(const std::string& path, Temporary temporary) : path_(path) {
  check_names_a_file(path);
  const std::filesystem::path target = resolve_links(path);
  target_ = target.string();
  const std::filesystem::path folder = folder_of(target);

  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT)
      throw bad_input(fmt::format("cannot write {}: there is no folder {}; make it first", path, folder.string()));
    throw cannot_write(path, errno);
  }
  if (!S_ISDIR(status.st_mode))
    throw bad_input(fmt::format("cannot write {}: {} is not a folder", path, folder.string()));

  // A link may end in a name of a folder that is not there.
  if (!target.has_filename()) throw bad_input(fmt::format("cannot write {}: it is a folder; name a file in it", path));
  const bool replaces = ::stat(target_.c_str(), &status) == 0;
  if (!replaces && errno != ENOENT) throw cannot_write(path, errno);
  // A rename would replace a file that its owner protected.
  if (replaces && ::faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) throw cannot_write(path, errno);

  if (temporary == Temporary::unnamed_if_possible) open_unnamed();
  if (descriptor_ < 0) open_named();
  if (replaces) keep(status);
}

std::string AtomicFile::new_name() const {
  const std::filesystem::path target = target_;
  // Room for the suffix within the 255 bytes of a file name.
  const std::string stem = target.filename().string().substr(0, 200);
  return (folder_of(target) / fmt::format(".{}.{}.tmp", stem, random_suffix())).string();
}

std::string AtomicFile::own_path() const {
  return fmt::format("/proc/self/fd/{}", descriptor_);
}

std::string AtomicFile::temporary_path() const {
  return temporary_.empty() ? own_path() : temporary_;
}

// Whatever stands against it, the attempt with a name says so.
void AtomicFile::open_unnamed() {
  descriptor_ = ::open(folder_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  // Without /proc it could get no name later.
  if (descriptor_ >= 0 && ::access(own_path().c_str(), F_OK) != 0) close_and_remove();
}

void AtomicFile::open_named() {
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = new_name();
    descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == 100)) {
      const int error = errno;
      temporary_.clear();
      throw cannot_write(path_, error);
    }
  }
}

void AtomicFile::keep(const struct stat& replaced) {
  // Before the mode, of which a change of owner clears bits. Only the superuser may give files away, and others only to
  // groups of theirs.
  [[maybe_unused]] const bool kept = ::fchown(descriptor_, replaced.st_uid, replaced.st_gid) == 0 ||
                                     ::fchown(descriptor_, static_cast<uid_t>(-1), replaced.st_gid) == 0;
  require(::fchmod(descriptor_, replaced.st_mode & 07777) == 0 ? 0 : errno);
}

AtomicFile::~AtomicFile() {
  close_and_remove();
}

void AtomicFile::require(int error) {
  if (error == 0) return;
  close_and_remove();
  throw cannot_write(path_, error);
}

void AtomicFile::close_and_remove() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  descriptor_ = -1;
  temporary_.clear();
}

void AtomicFile::reserve(std::int64_t bytes) {
  while (::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, bytes) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) throw cannot_write(path_, errno);
    return;  // a file system that cannot: a full disk is then found by the write
  }
}

void AtomicFile::write_at(std::int64_t offset, const void* from, std::int64_t bytes) {
  const auto* in = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t put = ::pwrite(descriptor_, in, static_cast<std::size_t>(bytes), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) throw cannot_write(path_, put < 0 ? errno : ENOSPC);
    in += put;
    offset += put;
    bytes -= put;
    size_ = std::max(size_, offset);
  }
}

void AtomicFile::read_at(std::int64_t offset, void* to, std::int64_t bytes) const {
  auto* out = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(descriptor_, out, static_cast<std::size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw cannot_write(path_, got < 0 ? errno : EIO);
    out += got;
    offset += got;
    bytes -= got;
  }
}

void AtomicFile::adopt() {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) throw cannot_write(path_, errno);
  size_ = status.st_size;
}

// A disk may report only here that it kept nothing: at fsync, or (over a network) when a descriptor is closed.
int AtomicFile::synchronise() {
  struct stat status {};
  if (::fsync(descriptor_) != 0 || ::fstat(descriptor_, &status) != 0) return errno;
  if (status.st_size != size_) return EIO;
  const int copy = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  return copy < 0 || ::close(copy) != 0 ? errno : 0;
}

int AtomicFile::link_under_a_new_name() {
  for (int attempt = 0;; ++attempt) {
    const std::string name = new_name();
    if (::linkat(AT_FDCWD, own_path().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      return 0;
    }
    if (errno != EEXIST || attempt == 100) return errno;
  }
}

// A file without a name gets the target's, where that is free. A link cannot replace a file, a rename can: else it gets
// a name of its own first, and between these two calls alone a kill would leave it behind.
int AtomicFile::put_in_place() {
  if (temporary_.empty()) {
    if (::linkat(AT_FDCWD, own_path().c_str(), AT_FDCWD, target_.c_str(), AT_SYMLINK_FOLLOW) == 0) return 0;
    if (errno != EEXIST) return errno;
    if (const int error = link_under_a_new_name()) return error;
  }
  return ::rename(temporary_.c_str(), target_.c_str()) == 0 ? 0 : errno;
}

void AtomicFile::commit() {
  store();
  place();
}

void AtomicFile::store() {
  require(synchronise());
}

void AtomicFile::place() {
  require(put_in_place());
  temporary_.clear();
  close_and_remove();
  // The name, too, should outlive a power cut; where the folder cannot be synchronised, the file is in place anyway.
  const int folder_descriptor = ::open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder_descriptor >= 0) {
    ::fsync(folder_descriptor);
    ::close(folder_descriptor);
  }
}

}  // namespace omniconv::image
