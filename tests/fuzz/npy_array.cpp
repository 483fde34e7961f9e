#include "image/formats/npy/npy_array.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "core/checked.h"
#include "image/formats/npy/npy.h"
#include "memory_file.h"
#include "targets.h"

namespace omniconv::fuzz {
namespace {

using image::NpyHeader;
using image::NpyWanted;

// A pipe that holds the content and has been written to its end: nobody knows its size beforehand.
class Pipe {
 public:
  explicit Pipe(std::string_view content) {
    require(::pipe(ends_) == 0, "there is a pipe");
    require(::write(ends_[1], content.data(), content.size()) == std::ssize(content), "the input fits into a pipe");
    ::close(ends_[1]);
  }
  ~Pipe() { ::close(ends_[0]); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  std::string path() const { return fmt::format("/proc/self/fd/{}", ends_[0]); }

 private:
  int ends_[2] = {};
};

// None where it is refused.
using Elements = std::optional<std::vector<std::byte>>;
Elements read(const std::string& path, const NpyWanted& wanted) {
  Elements elements;
  refused([&] { elements = image::read_npy_array(path, wanted); });
  return elements;
}

// Of the elements in the file; none where they pass 2^63.
std::optional<std::int64_t> bytes_of(const NpyWanted& wanted) {
  std::optional<std::int64_t> bytes;
  refused([&] {
    std::int64_t product = size_of(image::file_type(wanted.type));
    for (const std::int64_t extent : wanted.shape) product = checked_multiply(product, extent, "an array");
    bytes = product;
  });
  return bytes;
}

bool is_whole(const NpyHeader& header, const NpyWanted& wanted, std::string_view content) {
  const std::optional<std::int64_t> bytes = bytes_of(wanted);
  return header.type == image::file_type(wanted.type) && !header.swapped && header.shape == wanted.shape && bytes &&
         std::ssize(content) - static_cast<std::int64_t>(header.data_offset) == *bytes;
}

void check_round_trip(const NpyWanted& wanted, const std::vector<std::byte>& elements) {
  std::vector<std::byte> data = elements;
  std::string written = image::npy_file_header(wanted.type, wanted.shape, data);
  written.append(reinterpret_cast<const char*>(data.data()), data.size());
  require(read(MemoryFile(written).path(), wanted) == elements, "an array reads as it was written");
}

void check(std::string_view content, const std::optional<NpyHeader>& header, const NpyWanted& wanted) {
  const Elements elements = read(MemoryFile(content).path(), wanted);
  require(elements.has_value() == (header && is_whole(*header, wanted, content)),
          "an array is read where it is the wanted one, whole, with nothing behind it");
  // From a pipe as much memory is taken as is wanted.
  if (const auto bytes = bytes_of(wanted); bytes && *bytes < 1 << 20)
    require(read(Pipe(content).path(), wanted) == elements, "an array reads from a pipe as from a file");
  if (!elements) return;
  const std::string_view data = content.substr(header->data_offset);
  if (wanted.type == DataType::bf16)
    require(2 * elements->size() == data.size(), "bf16 takes half the memory of its file's elements");
  else
    require(std::ranges::equal(*elements, std::as_bytes(std::span(data))), "elements are read as they are");
  check_round_trip(wanted, *elements);
}

}  // namespace

void npy_array(std::string_view content) {
  std::optional<NpyHeader> header;
  refused([&] { header = image::parse_npy_header(std::as_bytes(std::span(content)), "the array"); });
  using Shape = std::vector<std::int64_t>;
  const Shape declared = header ? header->shape : Shape{2, 3};
  for (const DataType type : {DataType::f16, DataType::f32, DataType::f64, DataType::bf16, DataType::tf32})
    check(content, header, {"x", "n, c", type, declared});
  // What convolutions want: four extents, or one.
  for (const Shape& shape : {Shape{1, 2, 2, 3}, Shape{5}})
    check(content, header, {"w", "k, c, r, s", DataType::f32, shape});
}

}  // namespace omniconv::fuzz
