#include "image/formats/npy/npy_array.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/checked.h"
#include "core/convert.h"
#include "image/formats/npy/npy.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

// A file or a pipe, read from its beginning to its end.
class Stream {
 public:
  explicit Stream(const std::string& path) : name_(path == "-" ? "the standard input" : path) {
    if (path.empty()) throw bad_input("the name of an array's file is empty");
    if (path == "-") {
      descriptor_ = STDIN_FILENO;
    } else {
      opened_ = descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (descriptor_ < 0) throw bad_input(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    }
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) && path != "-") bytes_ = status.st_size;
  }
  ~Stream() {
    if (opened_ >= 0) ::close(opened_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  const std::string& name() const { return name_; }
  // In all, where that is known beforehand.
  std::optional<std::int64_t> bytes() const { return bytes_; }

  // As many of `bytes` as there are before the end.
  std::int64_t read(std::byte* to, std::int64_t bytes) const {
    std::int64_t have = 0;
    while (have < bytes) {
      const ssize_t got = ::read(descriptor_, to + have, static_cast<std::size_t>(bytes - have));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw bad_input(fmt::format("cannot read {}: {}", name_, std::strerror(errno)));
      if (got == 0) break;
      have += got;
    }
    return have;
  }

 private:
  std::string name_;
  int descriptor_ = -1, opened_ = -1;
  std::optional<std::int64_t> bytes_;
};

const char* numpy_name(DataType file) {
  if (file == DataType::f16) return "<f2 (float16)";
  if (file == DataType::s32) return "<i4 (int32)";
  return file == DataType::f64 ? "<f8 (float64)" : "<f4 (float32)";
}

void require_match(const NpyHeader& header, const NpyWanted& wanted, const std::string& source) {
  const DataType file = file_type(wanted.type);
  if (header.type != file || header.swapped)
    throw bad_input(
        fmt::format("{}: its elements are {}{}, and {} of a problem of {} is read from {}: convert it with "
                    ".astype('{}') in NumPy",
                    source, name(header.type), header.swapped ? " in big-endian order" : "", wanted.name,
                    name(wanted.type), numpy_name(file), std::string(numpy_name(file)).substr(0, 3)));
  if (header.shape != wanted.shape)
    throw bad_input(fmt::format("{}: its shape is {}, and {} ({}) must be ({}{})", source, shape_text(header.shape),
                                wanted.name, wanted.axes, fmt::join(wanted.shape, ", "),
                                wanted.shape.size() == 1 ? "," : ""));
}

// The header and what follows it.
std::vector<std::byte> beginning_of(const Stream& stream) {
  std::vector<std::byte> beginning(npy_header_limit + 12);
  beginning.resize(static_cast<std::size_t>(stream.read(beginning.data(), std::ssize(beginning))));
  if (beginning.empty()) throw bad_input(fmt::format("{} is empty; an array in .npy form is expected", stream.name()));
  return beginning;
}

// In place: each result lies at or before what it was made from.
void round_to_bf16(std::vector<std::byte>& data) {
  const std::size_t elements = data.size() / sizeof(float);
  for (std::size_t i = 0; i < elements; ++i) {
    float value = 0;
    std::memcpy(&value, data.data() + i * sizeof value, sizeof value);
    store_element(DataType::bf16, value, data.data() + i * sizeof(std::uint16_t));
  }
  data.resize(elements * sizeof(std::uint16_t));
}

}  // namespace

DataType file_type(DataType type) {
  return type == DataType::bf16 || type == DataType::tf32 ? DataType::f32 : type;
}

std::vector<std::int64_t> npy_shape(const std::string& path) {
  const Stream stream(path);
  return parse_npy_header(beginning_of(stream), stream.name()).shape;
}

std::vector<std::byte> read_npy_array(const std::string& path, const NpyWanted& wanted) {
  const Stream stream(path);
  const std::vector<std::byte> beginning = beginning_of(stream);
  const NpyHeader header = parse_npy_header(beginning, stream.name());
  require_match(header, wanted, stream.name());
  if (stream.bytes()) check_npy_size(header, *stream.bytes(), stream.name());

  const std::int64_t bytes =
      checked_multiply(header.elements(), size_of(header.type), "the size of an array");  // of the shape that is wanted
  std::vector<std::byte> data(static_cast<std::size_t>(bytes));
  const auto begun = std::min(std::ssize(beginning) - static_cast<std::int64_t>(header.data_offset), bytes);
  std::copy_n(beginning.begin() + static_cast<std::ptrdiff_t>(header.data_offset), begun, data.begin());
  const std::int64_t have = begun + stream.read(data.data() + begun, bytes - begun);
  const auto at = static_cast<std::int64_t>(header.data_offset);
  std::byte more;
  if (have < bytes) check_npy_size(header, at + have, stream.name());
  if (std::ssize(beginning) - at > bytes || stream.read(&more, 1) == 1)
    throw bad_input(fmt::format("{} goes on after its array: the shape {} of {} ends at byte {}", stream.name(),
                                shape_text(header.shape), name(header.type), at + bytes));
  if (wanted.type == DataType::bf16) round_to_bf16(data);
  return data;
}

std::string npy_file_header(DataType type, std::span<const std::int64_t> shape, std::vector<std::byte>& data) {
  if (type == DataType::bf16) {
    std::vector<std::byte> wide(data.size() * 2);
    for (std::size_t i = 0; i < data.size(); i += sizeof(std::uint16_t)) {
      const auto value = static_cast<float>(load_element(DataType::bf16, data.data() + i));
      std::memcpy(wide.data() + 2 * i, &value, sizeof value);
    }
    data = std::move(wide);
  }
  return npy_header_text(file_type(type), shape);
}

}  // namespace omniconv::image
