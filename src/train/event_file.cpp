#include "train/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "omniconv/error.h"

namespace omniconv::training {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t remainder = i;
    for (int bit = 0; bit < 8; ++bit) remainder = remainder >> 1 ^ (remainder & 1 ? 0x82F63B78u : 0);
    table[i] = remainder;
  }
  return table;
}

void put_fixed(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> 8 * i & 255);
}

// Protocol buffers: a field is its number with the kind of what follows, and that.
enum class Wire : std::uint64_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 128; value >>= 7) to += static_cast<char>(value | 128);
  to += static_cast<char>(value);
}
void put_field(std::string& to, std::uint64_t field, Wire wire) {
  put_varint(to, field << 3 | static_cast<std::uint64_t>(wire));
}
void put_bytes(std::string& to, std::uint64_t field, std::string_view bytes) {
  put_field(to, field, Wire::bytes);
  put_varint(to, bytes.size());
  to += bytes;
}

// Event: wall_time and step; one of file_version, summary and session_log follows.
std::string event_at(std::int64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  std::string event;
  put_field(event, 1, Wire::fixed64), put_fixed(event, std::bit_cast<std::uint64_t>(now.count()), 8);
  put_field(event, 2, Wire::varint), put_varint(event, static_cast<std::uint64_t>(step));
  return event;
}
constexpr std::uint64_t file_version = 3, summary = 5, session_log = 7;

// Checksums are turned, so that those of bytes that hold checksums are no trivial ones.
std::uint32_t masked(std::uint32_t sum) {
  return std::rotr(sum, 15) + 0xA282EAD8u;
}

// A name that no file has yet.
int create_in(const std::string& folder, std::string& path) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (int i = 0; i < 1000; ++i) {
    path = fmt::format("{}/events.out.tfevents.{:010}.omniconv.{}.{}", folder, seconds, ::getpid(), i);
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0 || errno != EEXIST) return descriptor;
  }
  return -1;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> table = make_table();
  std::uint32_t sum = ~0u;
  for (const char byte : bytes) sum = table[(sum ^ static_cast<unsigned char>(byte)) & 255] ^ sum >> 8;
  return ~sum;
}

EventFile::EventFile(const std::string& folder, std::int64_t steps_done) : folder_(folder) {
  std::error_code failed;
  made_folder_ = std::filesystem::create_directories(folder, failed);
  if (failed) throw bad_input(fmt::format("{}: the folder of events cannot be made: {}", folder, failed.message()));
  descriptor_ = create_in(folder, path_);
  if (descriptor_ < 0) {
    const int error = errno;
    if (made_folder_) std::filesystem::remove(folder_, failed);
    throw bad_input(fmt::format("{}: no file of events can be made there: {}", folder, std::strerror(error)));
  }
  try {
    std::string version = event_at(0), begin = event_at(steps_done + 1), start;
    put_bytes(version, file_version, "brain.Event:2");
    write(version);
    put_field(start, 1, Wire::varint), put_varint(start, 1);  // status: START
    put_bytes(begin, session_log, start);
    write(begin);
  } catch (...) {
    close();
    throw;
  }
}

EventFile::~EventFile() {
  close();
}

void EventFile::close() noexcept {
  ::close(descriptor_);
  if (has_numbers_) return;
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  if (made_folder_) std::filesystem::remove(folder_, ignored);  // where it is empty
}

void EventFile::add(std::int64_t step, std::span<const NamedNumber> numbers) {
  std::string values, event = event_at(step);
  for (const NamedNumber& number : numbers) {
    std::string value;
    put_bytes(value, 1, number.name);
    put_field(value, 2, Wire::fixed32);
    put_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number.value)), 4);
    put_bytes(values, 1, value);
  }
  put_bytes(event, summary, values);
  write(event);
  has_numbers_ = true;
}

void EventFile::write(std::string_view event) {
  std::string record;
  put_fixed(record, event.size(), 8);
  put_fixed(record, masked(crc32c(record)), 4);
  record += event;
  put_fixed(record, masked(crc32c(event)), 4);
  // At once, so that a reader, or the end of the process, finds no part of it.
  for (std::size_t done = 0; done < record.size();) {
    const ssize_t now = ::write(descriptor_, record.data() + done, record.size() - done);
    if (now < 0 && errno == EINTR) continue;
    if (now < 0) {
      const int error = errno;
      if (::ftruncate(descriptor_, size_) == 0) ::lseek(descriptor_, size_, SEEK_SET);
      throw environment_error(fmt::format("{}: it cannot be written: {}", path_, std::strerror(error)));
    }
    done += static_cast<std::size_t>(now);
  }
  size_ += std::ssize(record);
}

}  // namespace omniconv::training
