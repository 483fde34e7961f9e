#include "devices/program_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/fnv.h"

namespace omniconv::devices {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".program", temporary_prefix = ".new-";

// At the start of a file; then the key, then the program.
struct Header {
  std::array<char, 16> magic{'o', 'm', 'n', 'i', 'c', 'o', 'n', 'v', ' ', 'p', 'r', 'o', 'g', ' ', '1', '\n'};
  std::uint64_t key_bytes = 0, program_bytes = 0, checksum = 0;
};

Header header_of(std::string_view key, std::string_view program) {
  Header header;
  header.key_bytes = key.size();
  header.program_bytes = program.size();
  header.checksum = fnv_hash(program, fnv_hash(key));
  return header;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return number_; }

 private:
  int number_;
};

// All of the file, or nothing.
bool read_all(int descriptor, std::string& content) {
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t got = ::read(descriptor, content.data() + done, content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// 0, or an errno.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t put = ::write(descriptor, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 ? errno : ENOSPC;
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

// With a temporary file and a rename: readers see the old file or the new one. 0, or an errno.
int replace_file(const std::string& folder, const std::string& path, std::initializer_list<std::string_view> parts) {
  std::string temporary = fmt::format("{}/{}XXXXXX", folder, temporary_prefix);
  const Descriptor file(::mkostemp(temporary.data(), O_CLOEXEC));  // its mode is 0600
  if (file.get() < 0) return errno;
  int error = 0;
  for (const std::string_view part : parts)
    if (error == 0) error = write_all(file.get(), part);
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(temporary.c_str());
  return error;
}

// For the user alone, as the folders of caches should be. 0, or an errno.
int make_folders(const fs::path& folder) {
  std::error_code error;
  if (folder.empty() || fs::is_directory(folder, error)) return 0;
  if (const int failed = make_folders(folder.parent_path())) return failed;
  return ::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST ? 0 : errno;
}

// Why a file is not to be trusted, whatever it holds; empty if it may be.
std::string distrust(const struct stat& status, std::int64_t limit_bytes) {
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if (status.st_uid != ::geteuid()) return "it belongs to another user";
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others than its owner may change it";
  if (status.st_size < static_cast<off_t>(sizeof(Header)) || status.st_size > limit_bytes) return "it is damaged";
  return {};
}

// The parts of a file's content; nothing where it is not what was written.
struct Entry {
  std::string_view key, program;
};
std::optional<Entry> parse(std::string_view content) {
  Header found;
  std::memcpy(&found, content.data(), sizeof found);
  const std::string_view rest = content.substr(sizeof found);
  if (found.key_bytes > rest.size() || found.program_bytes != rest.size() - found.key_bytes) return std::nullopt;
  const Entry entry{rest.substr(0, found.key_bytes), rest.substr(found.key_bytes)};
  const Header expected = header_of(entry.key, entry.program);
  if (found.magic != expected.magic || found.checksum != expected.checksum) return std::nullopt;
  return entry;
}

}  // namespace

ProgramCache::ProgramCache(std::string folder, std::function<void(const std::string&)> warn, std::int64_t limit_bytes)
    : folder_(std::move(folder)), warn_(std::move(warn)), limit_bytes_(limit_bytes) {}

std::string ProgramCache::key(std::span<const std::string_view> parts) {
  std::string joined;
  for (const std::string_view part : parts) joined += fmt::format("{}:{}\n", part.size(), part);
  return joined;
}

std::optional<std::string> ProgramCache::find(std::string_view key) {
  const Descriptor file(::open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ELOOP) discard(key, "it is no regular file");
    if (errno != ENOENT && errno != ENOTDIR)
      warn(fmt::format("{} cannot be read: {}", path_of(key), std::strerror(errno)));
    return std::nullopt;
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return std::nullopt;
  if (const std::string reason = distrust(status, limit_bytes_); !reason.empty()) {
    discard(key, reason);
    return std::nullopt;
  }
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  const std::optional<Entry> entry = read_all(file.get(), content) ? parse(content) : std::nullopt;
  if (!entry) {
    discard(key, "it is damaged");
    return std::nullopt;
  }
  if (entry->key != key) return std::nullopt;  // another program of the same hash
  ::futimens(file.get(), nullptr);             // used now; where that cannot be noted, it counts as older than it is
  return std::string(entry->program);
}

void ProgramCache::store(std::string_view key, std::string_view program) {
  const Header header = header_of(key, program);
  int error = make_folders(folder_);
  if (error == 0)
    error =
        replace_file(folder_, path_of(key), {{reinterpret_cast<const char*>(&header), sizeof header}, key, program});
  if (error != 0)
    warn(fmt::format("compiled programs cannot be kept in {}: {}; they are compiled at every start", folder_,
                     std::strerror(error)));
  else
    make_room();
}

void ProgramCache::discard(std::string_view key, std::string_view reason) {
  ::unlink(path_of(key).c_str());
  warn(fmt::format("the compiled program {} is not used: {}; it is compiled again", path_of(key), reason));
}

std::string ProgramCache::path_of(std::string_view key) const {
  return fmt::format("{}/{:016x}{}", folder_, fnv_hash(key), suffix);
}

// Another process may do the same at the same time: what is gone already is no error.
void ProgramCache::make_room() {
  struct File {
    fs::file_time_type used;
    std::int64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::int64_t all = 0;
  std::error_code error;
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (fs::directory_iterator item(folder_, error), end; !error && item != end; item.increment(error)) {
    const std::string name = item->path().filename().string();
    std::error_code gone;
    const fs::file_time_type used = item->last_write_time(gone);
    const std::uintmax_t bytes = gone ? 0 : item->file_size(gone);
    if (gone) continue;
    // Of a process that was killed as it wrote.
    if (name.starts_with(temporary_prefix) && used < an_hour_ago) fs::remove(item->path(), gone);
    if (!name.ends_with(suffix)) continue;
    files.push_back({used, static_cast<std::int64_t>(bytes), item->path()});
    all += files.back().bytes;
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  for (const File& file : files) {
    if (all <= limit_bytes_) break;
    fs::remove(file.path, error);
    all -= file.bytes;
  }
}

void ProgramCache::warn(const std::string& message) {
  if (warn_ && !has_warned_.test_and_set()) warn_(message);
}

std::shared_ptr<ProgramCache> make_program_cache(const ContextOptions& options) {
  if (options.program_cache.empty()) return nullptr;
  return std::make_shared<ProgramCache>(options.program_cache, options.warn);
}

}  // namespace omniconv::devices
