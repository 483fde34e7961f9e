#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "image/formats/npy/npy.h"
#include "image/formats/pnm/pnm.h"
#include "image/image.h"
#include "image/raster.h"
#include "memory_file.h"
#include "targets.h"

namespace omniconv::fuzz {
namespace {

using image::ImageInfo;
using image::ImageReader;
using image::ImageWriter;

// Choices that follow from the content alone, so that a file is all that is needed to repeat a run.
class Choices {
 public:
  explicit Choices(std::string_view content) : state_(std::hash<std::string_view>{}(content)) {}
  // 0 .. limit - 1.
  std::int64_t below(std::int64_t limit) {
    state_ += 0x9E3779B97F4A7C15u;
    std::uint64_t mixed = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return static_cast<std::int64_t>((mixed >> 33) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_;
};

// A folder in memory, removed with what is in it.
class Folder {
 public:
  Folder() {
    char name[] = "/dev/shm/omniconv-fuzz-XXXXXX";
    require(::mkdtemp(name) != nullptr, "there is a folder to write in");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// What reading row by row gives, as far as it goes.
struct Rows {
  ImageInfo info;
  std::int64_t row_bytes = 0;
  std::int64_t good = 0;  // rows before the first that is refused
  std::vector<std::byte> pixels;
  bool whole() const { return good == info.h; }
};

Rows read_rows(ImageReader& reader) {
  Rows rows{reader.info(), image::row_bytes(reader.info()), 0, {}};
  std::vector<std::byte> row(static_cast<std::size_t>(rows.row_bytes));
  for (; rows.good < rows.info.h; ++rows.good) {
    if (refused([&] { reader.read_rows(rows.good, 1, row.data(), rows.row_bytes); })) break;
    rows.pixels.insert(rows.pixels.end(), row.begin(), row.end());
  }
  return rows;
}

// One call for any rows, there or not, at any distance in memory.
void check_span(ImageReader& reader, const Rows& rows, Choices& choices) {
  const std::int64_t first = choices.below(rows.info.h + 3) - 1;
  const std::int64_t count = choices.below(std::min<std::int64_t>(rows.info.h - first, 64) + 2) - (first > 0 ? 0 : 1);
  const std::int64_t stride = rows.row_bytes + choices.below(3) * size_of(rows.info.type);
  const std::int64_t bytes = count > 0 ? (count - 1) * stride + rows.row_bytes : 0;
  constexpr std::byte untouched{0xA5};
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes), untouched);
  const bool refusal = refused([&] { reader.read_rows(first, count, memory.data(), stride); });

  const bool there = first >= 0 && count >= 0 && first + count <= rows.info.h;
  const std::string call = fmt::format("rows {} + {} of {}, {} of them good", first, count, rows.info.h, rows.good);
  if (!there || (first <= rows.good && first + count > rows.good))
    require(refusal, "what is not there is refused: " + call);
  if (!there || first + count > rows.good) return;
  require(!refusal, "what can be read alone can be read together: " + call);
  for (std::int64_t i = 0; i < count; ++i) {
    require(std::memcmp(memory.data() + i * stride, rows.pixels.data() + (first + i) * rows.row_bytes,
                        static_cast<std::size_t>(rows.row_bytes)) == 0,
            "a row is the same in every span: " + call);
    for (std::int64_t j = rows.row_bytes; j < stride && i + 1 < count; ++j)
      require(memory[static_cast<std::size_t>(i * stride + j)] == untouched,
              "the room between rows is untouched: " + call);
  }
}

void write_in_spans(ImageWriter& writer, const Rows& rows, Choices& choices) {
  for (std::int64_t row = 0; row < rows.info.h;) {
    const std::int64_t count = std::min(rows.info.h - row, choices.below(9));
    writer.write_rows(row, count, rows.pixels.data() + row * rows.row_bytes, rows.row_bytes);
    row += count;
  }
  writer.finish();
}

bool fits(std::string_view extension, const Rows& rows) {
  const auto is_bit = [](std::byte pixel) { return pixel == std::byte{0} || pixel == std::byte{255}; };
  const ImageInfo& info = rows.info;
  if (extension == "pfm") return info.type == DataType::f32 && (info.c == 1 || info.c == 3);
  if (extension == "pam") return info.type == DataType::u8 || info.type == DataType::u16;
  if (extension == "pbm")
    return info.type == DataType::u8 && info.c == 1 && std::all_of(rows.pixels.begin(), rows.pixels.end(), is_bit);
  return true;
}

void check_written(std::string_view extension, const Rows& rows, const Folder& folder, Choices& choices) {
  const std::string path = folder.file(fmt::format("image.{}", extension));
  write_in_spans(*image::create_image(path, rows.info), rows, choices);
  const Rows back = read_rows(*image::open_image(path));
  const ImageInfo &info = rows.info, &again = back.info;
  require(again.h == info.h && again.w == info.w && again.c == info.c && again.type == info.type,
          fmt::format("a .{} has the extents and the type that were written", extension));
  require(back.whole() && back.pixels == rows.pixels, fmt::format("a .{} reads as it was written", extension));
  if (extension == "pam") require(again.alpha_channel == info.alpha_channel, "a .pam keeps its alpha channel");
}

}  // namespace

void image_file(std::string_view content) {
  const auto bytes = std::as_bytes(std::span(content));
  if (!image::is_pnm(bytes) && !image::is_npy(bytes)) return;  // a file for the image module
  Choices choices(content);
  const MemoryFile file(content);
  const int page = static_cast<int>(choices.below(4));
  std::unique_ptr<ImageReader> reader;
  if (refused([&] { reader = image::open_image(file.path(), page); })) return;

  const ImageInfo& info = reader->info();
  const std::int64_t file_bytes = std::ssize(content);
  // Bits take most: eight pixels of a byte each from one byte of the file.
  require(image::raster_bytes(info, "image") <= 8 * file_bytes, "an image is no larger than its file allows");
  require(info.resident_bytes >= 0 && info.resident_bytes <= 65536 + file_bytes, "a reader holds little");
  require(info.alpha_channel < info.c, "the alpha channel is a channel");

  const Rows rows = read_rows(*reader);
  for (int i = 0; i < 12; ++i) check_span(*reader, rows, choices);
  if (!rows.whole()) return;
  const Folder folder;
  for (const std::string_view extension : {"npy", "pam", "pfm", "pbm"})
    if (fits(extension, rows)) check_written(extension, rows, folder, choices);
}

}  // namespace omniconv::fuzz
