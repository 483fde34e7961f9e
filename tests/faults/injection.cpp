// Preloaded into the command: counts the calls that concern files of one folder, and makes some of them fail.
//
//   OMNICONV_FAULTS_FOLDER  the folder, absolute and without links
//   OMNICONV_FAULTS_LOG     a file outside of it, which gets a line for each call: its kind, and what becomes of it
//   OMNICONV_FAULTS         KIND:FIRST:COUNT:ERRNO[:short],... the calls of that kind from FIRST on, counted from 1,
//                           that fail. With `short` the call FIRST writes half, and those behind it fail.
//
// Calls are seen that go through the C library's names. Those that it makes of itself, as stdio's, are not.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

enum class Fate { success, half, failure };

constexpr std::size_t most_faults = 8;

struct Fault {
  std::string_view kind;
  long first = 0, count = 0;
  int error = 0;
  bool is_short = false;
  std::atomic<long> calls{0};
};

struct Faults {
  std::array<Fault, most_faults> all;
  std::size_t count = 0;

  Faults() {
    const char* text = std::getenv("OMNICONV_FAULTS");
    while (text != nullptr && *text != '\0' && count < most_faults) {
      Fault& fault = all[count++];
      fault.kind = std::string_view(text, std::strcspn(text, ":"));
      int read = 0;
      std::sscanf(text + fault.kind.size(), ":%ld:%ld:%d%n", &fault.first, &fault.count, &fault.error, &read);
      text += fault.kind.size() + static_cast<std::size_t>(read);
      fault.is_short = std::strncmp(text, ":short", 6) == 0;
      text += std::strcspn(text, ",");
      text += *text == ',';
    }
  }
};

void log(const char* kind, Fate fate) {
  const char* const path = std::getenv("OMNICONV_FAULTS_LOG");
  if (path == nullptr) return;
  std::array<char, 64> line;
  const int length = std::snprintf(line.data(), line.size(), "%s %s\n", kind,
                                   fate == Fate::success ? "succeeds" : (fate == Fate::half ? "writes half" : "fails"));
  const auto file = static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0666));
  if (file < 0) return;
  ::syscall(SYS_write, file, line.data(), length);
  ::syscall(SYS_close, file);
}

// Of the call of this kind that is now made; sets errno where it fails.
Fate fate_of(const char* kind, std::size_t bytes = 0) {
  const int before = errno;
  static Faults faults;
  Fate fate = Fate::success;
  int error = 0;
  for (std::size_t i = 0; i < faults.count; ++i) {
    Fault& fault = faults.all[i];
    if (fault.kind != kind) continue;
    const long call = ++fault.calls - fault.first;
    if (call < 0 || call >= fault.count + (fault.is_short ? 1 : 0)) continue;
    fate = fault.is_short && call == 0 && bytes > 1 ? Fate::half : Fate::failure;
    error = fault.error;
  }
  log(kind, fate);
  errno = fate == Fate::failure ? error : before;
  return fate;
}

enum class Place { elsewhere, folder, inside };

Place place_of_path(const char* absolute) {
  const char* const folder = std::getenv("OMNICONV_FAULTS_FOLDER");
  if (folder == nullptr) return Place::elsewhere;
  const std::size_t length = std::strlen(folder);
  if (std::strncmp(absolute, folder, length) != 0) return Place::elsewhere;
  const std::string_view rest = absolute + length;
  if (rest.empty() || rest == "/" || rest == "/.") return Place::folder;
  return rest[0] == '/' ? Place::inside : Place::elsewhere;
}

// Of files without names, too: their links say where they were made.
Place place_of(int descriptor) {
  const int before = errno;
  std::array<char, 32> link;
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  std::array<char, PATH_MAX> path{};
  const long length = ::syscall(SYS_readlinkat, AT_FDCWD, link.data(), path.data(), path.size() - 1);
  errno = before;
  return length > 0 ? place_of_path(path.data()) : Place::elsewhere;
}

Place place_of(const char* path) {
  if (path == nullptr) return Place::elsewhere;
  int descriptor = 0;
  if (std::sscanf(path, "/proc/self/fd/%d", &descriptor) == 1) return place_of(descriptor);
  if (*path == '/') return place_of_path(path);
  std::array<char, PATH_MAX> here{};
  if (::syscall(SYS_getcwd, here.data(), here.size()) <= 0) return Place::elsewhere;
  std::array<char, 2 * PATH_MAX> absolute;
  std::snprintf(absolute.data(), absolute.size(), "%s/%s", here.data(), path);
  return place_of_path(absolute.data());
}

template <typename Where>
bool concerns(Where where) {
  return place_of(where) != Place::elsewhere;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

const char* kind_of_open(int flags) {
  if ((flags & O_TMPFILE) == O_TMPFILE) return "open-unnamed";
  if ((flags & O_DIRECTORY) != 0) return "open-folder";
  return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0 ? "open-to-write" : "open-to-read";
}

bool open_fails(const char* path, int flags) {
  return concerns(path) && fate_of(kind_of_open(flags)) == Fate::failure;
}

// Which descriptors are copies of others: a close of these is where some file systems tell of a failed write.
std::array<std::atomic<bool>, 1024> is_copy{};

std::atomic<bool>* copy_mark(int descriptor) {
  const auto at = static_cast<std::size_t>(descriptor);
  return descriptor >= 0 && at < is_copy.size() ? &is_copy[at] : nullptr;
}

template <typename Write>
ssize_t write_or_fail(int descriptor, std::size_t bytes, Write write) {
  if (!concerns(descriptor)) return write(bytes);
  const Fate fate = fate_of("write", bytes);
  if (fate == Fate::failure) return -1;
  return write(fate == Fate::half ? bytes / 2 : bytes);
}

}  // namespace

// The C library's function NAME, by which programs call it whatever their headers make of it.
#define HOOK(result, name, ...)                          \
  extern "C" result hook_##name(__VA_ARGS__) asm(#name); \
  extern "C" result hook_##name(__VA_ARGS__)
#define NEXT(name) next<decltype(hook_##name)>(#name)

// What open() takes behind its flags, where it creates a file.
#define MODE(flags)                                                 \
  mode_t mode = 0;                                                  \
  if (((flags)&O_CREAT) != 0 || ((flags)&O_TMPFILE) == O_TMPFILE) { \
    va_list rest;                                                   \
    va_start(rest, flags);                                          \
    mode = va_arg(rest, mode_t);                                    \
    va_end(rest);                                                   \
  }

HOOK(int, open, const char* path, int flags, ...) {
  MODE(flags)
  return open_fails(path, flags) ? -1 : NEXT(open)(path, flags, mode);
}
HOOK(int, open64, const char* path, int flags, ...) {
  MODE(flags)
  return open_fails(path, flags) ? -1 : NEXT(open64)(path, flags, mode);
}
HOOK(int, openat, int folder, const char* path, int flags, ...) {
  MODE(flags)
  return open_fails(path, flags) ? -1 : NEXT(openat)(folder, path, flags, mode);
}
HOOK(int, openat64, int folder, const char* path, int flags, ...) {
  MODE(flags)
  return open_fails(path, flags) ? -1 : NEXT(openat64)(folder, path, flags, mode);
}
// What the checked forms of the C library's headers call.
HOOK(int, __open_2, const char* path, int flags) {
  return open_fails(path, flags) ? -1 : NEXT(__open_2)(path, flags);
}
HOOK(int, __open64_2, const char* path, int flags) {
  return open_fails(path, flags) ? -1 : NEXT(__open64_2)(path, flags);
}
// Of stdio the opening alone is seen.
HOOK(FILE*, fopen, const char* path, const char* mode) {
  const int flags = std::strpbrk(mode, "wa+") != nullptr ? O_WRONLY : O_RDONLY;
  return open_fails(path, flags) ? nullptr : NEXT(fopen)(path, mode);
}
HOOK(FILE*, fopen64, const char* path, const char* mode) {
  const int flags = std::strpbrk(mode, "wa+") != nullptr ? O_WRONLY : O_RDONLY;
  return open_fails(path, flags) ? nullptr : NEXT(fopen64)(path, mode);
}

HOOK(ssize_t, write, int file, const void* from, std::size_t bytes) {
  return write_or_fail(file, bytes, [&](std::size_t count) { return NEXT(write)(file, from, count); });
}
HOOK(ssize_t, pwrite, int file, const void* from, std::size_t bytes, off_t at) {
  return write_or_fail(file, bytes, [&](std::size_t count) { return NEXT(pwrite)(file, from, count, at); });
}
HOOK(ssize_t, pwrite64, int file, const void* from, std::size_t bytes, off_t at) {
  return write_or_fail(file, bytes, [&](std::size_t count) { return NEXT(pwrite64)(file, from, count, at); });
}
HOOK(ssize_t, writev, int file, const iovec* parts, int count) {
  if (concerns(file) && fate_of("write") == Fate::failure) return -1;
  return NEXT(writev)(file, parts, count);
}
HOOK(ssize_t, read, int file, void* to, std::size_t bytes) {
  return concerns(file) && fate_of("read") == Fate::failure ? -1 : NEXT(read)(file, to, bytes);
}
HOOK(ssize_t, pread, int file, void* to, std::size_t bytes, off_t at) {
  return concerns(file) && fate_of("read") == Fate::failure ? -1 : NEXT(pread)(file, to, bytes, at);
}
HOOK(ssize_t, pread64, int file, void* to, std::size_t bytes, off_t at) {
  return concerns(file) && fate_of("read") == Fate::failure ? -1 : NEXT(pread64)(file, to, bytes, at);
}

HOOK(int, fallocate, int file, int mode, off_t at, off_t bytes) {
  return concerns(file) && fate_of("fallocate") == Fate::failure ? -1 : NEXT(fallocate)(file, mode, at, bytes);
}
HOOK(int, fallocate64, int file, int mode, off_t at, off_t bytes) {
  return concerns(file) && fate_of("fallocate") == Fate::failure ? -1 : NEXT(fallocate64)(file, mode, at, bytes);
}
HOOK(int, ftruncate, int file, off_t bytes) {
  return concerns(file) && fate_of("truncate") == Fate::failure ? -1 : NEXT(ftruncate)(file, bytes);
}
HOOK(int, ftruncate64, int file, off_t bytes) {
  return concerns(file) && fate_of("truncate") == Fate::failure ? -1 : NEXT(ftruncate64)(file, bytes);
}
HOOK(off_t, lseek, int file, off_t at, int from) {
  return concerns(file) && fate_of("seek") == Fate::failure ? -1 : NEXT(lseek)(file, at, from);
}
HOOK(off_t, lseek64, int file, off_t at, int from) {
  return concerns(file) && fate_of("seek") == Fate::failure ? -1 : NEXT(lseek64)(file, at, from);
}

namespace {
bool fsync_fails(int file) {
  const Place place = place_of(file);
  if (place == Place::elsewhere) return false;
  return fate_of(place == Place::folder ? "fsync-folder" : "fsync") == Fate::failure;
}
}  // namespace
HOOK(int, fsync, int file) {
  return fsync_fails(file) ? -1 : NEXT(fsync)(file);
}
HOOK(int, fdatasync, int file) {
  return fsync_fails(file) ? -1 : NEXT(fdatasync)(file);
}

HOOK(int, fstat, int file, struct stat* to) {
  return concerns(file) && fate_of("fstat") == Fate::failure ? -1 : NEXT(fstat)(file, to);
}
HOOK(int, fstat64, int file, struct stat* to) {
  return concerns(file) && fate_of("fstat") == Fate::failure ? -1 : NEXT(fstat64)(file, to);
}
HOOK(int, stat, const char* path, struct stat* to) {
  return concerns(path) && fate_of("stat") == Fate::failure ? -1 : NEXT(stat)(path, to);
}
HOOK(int, stat64, const char* path, struct stat* to) {
  return concerns(path) && fate_of("stat") == Fate::failure ? -1 : NEXT(stat64)(path, to);
}
HOOK(int, lstat, const char* path, struct stat* to) {
  return concerns(path) && fate_of("stat") == Fate::failure ? -1 : NEXT(lstat)(path, to);
}
HOOK(int, lstat64, const char* path, struct stat* to) {
  return concerns(path) && fate_of("stat") == Fate::failure ? -1 : NEXT(lstat64)(path, to);
}
HOOK(ssize_t, readlink, const char* path, char* to, std::size_t bytes) {
  return concerns(path) && fate_of("readlink") == Fate::failure ? -1 : NEXT(readlink)(path, to, bytes);
}
HOOK(int, access, const char* path, int mode) {
  return concerns(path) && fate_of("access") == Fate::failure ? -1 : NEXT(access)(path, mode);
}
HOOK(int, faccessat, int folder, const char* path, int mode, int flags) {
  return concerns(path) && fate_of("faccessat") == Fate::failure ? -1 : NEXT(faccessat)(folder, path, mode, flags);
}
HOOK(int, fchown, int file, uid_t user, gid_t group) {
  return concerns(file) && fate_of("fchown") == Fate::failure ? -1 : NEXT(fchown)(file, user, group);
}
HOOK(int, fchmod, int file, mode_t mode) {
  return concerns(file) && fate_of("fchmod") == Fate::failure ? -1 : NEXT(fchmod)(file, mode);
}

namespace {
template <typename Function>
int fcntl_or_fail(Function* real, int file, int command, void* argument) {
  const bool copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
  if (!copies || !concerns(file)) return real(file, command, argument);
  if (fate_of("copy") == Fate::failure) return -1;
  const int copy = real(file, command, argument);
  if (std::atomic<bool>* const mark = copy_mark(copy)) *mark = true;
  return copy;
}
}  // namespace
HOOK(int, fcntl, int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return fcntl_or_fail(NEXT(fcntl), file, command, argument);
}
HOOK(int, fcntl64, int file, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return fcntl_or_fail(NEXT(fcntl64), file, command, argument);
}
// Closed it is in any case, as on Linux.
HOOK(int, close, int file) {
  const Place place = place_of(file);
  std::atomic<bool>* const mark = copy_mark(file);
  const bool was_copy = mark != nullptr && mark->exchange(false);
  const int status = NEXT(close)(file);
  if (place == Place::elsewhere) return status;
  const char* const kind = place == Place::folder ? "close-folder" : (was_copy ? "close-copy" : "close");
  return fate_of(kind) == Fate::failure ? -1 : status;
}

HOOK(int, linkat, int from_folder, const char* from, int to_folder, const char* to, int flags) {
  if (concerns(to) && fate_of("link") == Fate::failure) return -1;
  return NEXT(linkat)(from_folder, from, to_folder, to, flags);
}
HOOK(int, rename, const char* from, const char* to) {
  return concerns(to) && fate_of("rename") == Fate::failure ? -1 : NEXT(rename)(from, to);
}
HOOK(int, unlink, const char* path) {
  return concerns(path) && fate_of("unlink") == Fate::failure ? -1 : NEXT(unlink)(path);
}
