// Files of events, from which TensorBoard draws curves while a training goes on.
//
// Each record stands between its length and checksums (TFRecord), and is a message Event of TensorFlow's event.proto:
// wall_time, step, and numbers by their names. docs/decisions/0032 has the fields.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace omniconv::training {

// CRC-32C (Castagnoli): polynomial 0x1EDC6F41, reflected.
std::uint32_t crc32c(std::string_view bytes);

struct NamedNumber {
  std::string_view name;
  double value = 0;  // stored in fp32
};

// A new file in the folder, whose name says its second and process, so that a training that goes on adds one. It grows
// by whole records: of a process that is killed those are there that it has written.
class EventFile {
 public:
  // Makes the folder where it is missing. Of `steps_done` steps of the training other files of the folder may tell;
  // what they have of later ones is void. Throws bad_input where no file can be made there.
  EventFile(const std::string& folder, std::int64_t steps_done);
  // Removes a file that has got no numbers, and the last of its folders if it was made for it.
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  const std::string& path() const { return path_; }
  // After so many steps. What cannot be written whole is taken back, and thrown (environment_error).
  void add(std::int64_t step, std::span<const NamedNumber> numbers);

 private:
  void write(std::string_view event);
  void close() noexcept;

  std::string folder_, path_;
  int descriptor_ = -1;
  std::int64_t size_ = 0;
  bool made_folder_ = false, has_numbers_ = false;
};

}  // namespace omniconv::training
