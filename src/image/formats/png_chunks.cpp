#include "image/formats/png_chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "core/quoted.h"
#include "image/formats/big_endian.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

constexpr std::int64_t signature_bytes = 8;
constexpr std::uint32_t header_bytes = 13;
// libpng's own limit, for want of a larger wish.
constexpr std::uint32_t largest_extent = 1000000;
constexpr std::uint32_t most_exif_bytes = 8000000;  // as libpng takes of any chunk

// The checksum of every chunk, x^32 + x^26 + ... + 1 with its bits reversed. Eight tables take eight bytes a step: a
// large file is checked in a fraction of the time that it takes to decode.
class Crc32 {
 public:
  void add(const std::byte* bytes, std::size_t count) {
    for (; count >= 8; count -= 8, bytes += 8) {
      std::uint32_t next = 0;
      for (std::size_t i = 0; i < 8; ++i) {
        const std::uint32_t folded = i < 4 ? remainder_ >> (8 * i) : 0;
        next ^= tables[7 - i][(folded ^ std::to_integer<std::uint32_t>(bytes[i])) & 255];
      }
      remainder_ = next;
    }
    for (; count > 0; --count, ++bytes)
      remainder_ = remainder_ >> 8 ^ tables[0][(remainder_ ^ std::to_integer<std::uint32_t>(*bytes)) & 255];
  }
  std::uint32_t value() const { return ~remainder_; }

 private:
  using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
  static constexpr Tables make_tables() {
    Tables made{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t remainder = byte;
      for (int bit = 0; bit < 8; ++bit) remainder = (remainder & 1 ? 0xEDB88320u : 0u) ^ remainder >> 1;
      made[0][byte] = remainder;
    }
    for (std::size_t table = 1; table < 8; ++table)
      for (std::size_t byte = 0; byte < 256; ++byte) {
        const std::uint32_t before = made[table - 1][byte];
        made[table][byte] = before >> 8 ^ made[0][before & 255];
      }
    return made;
  }
  static const Tables tables;

  std::uint32_t remainder_ = 0xFFFFFFFFu;
};
constexpr Crc32::Tables Crc32::tables = Crc32::make_tables();

// What stands before its data.
PngChunk chunk_at(const InputFile& file, std::int64_t at) {
  std::byte head[8];
  file.read_at(at, head, 8);
  return {.begin = at, .length = big_endian_at(head), .kind = std::string(reinterpret_cast<const char*>(head) + 4, 4)};
}
std::int64_t end_of(const PngChunk& chunk) {
  return chunk.begin + 12 + static_cast<std::int64_t>(chunk.length);
}

// The file is there as far as the chunk's end.
void check_sum(const InputFile& file, std::int64_t begin, std::uint32_t length, std::string_view kind) {
  Crc32 sum;
  std::vector<std::byte> block;
  const std::int64_t end = begin + 8 + length;
  for (std::int64_t at = begin + 4; at < end; at += static_cast<std::int64_t>(block.size())) {
    block.resize(static_cast<std::size_t>(std::min<std::int64_t>(end - at, 1 << 18)));
    file.read_at(at, block.data(), static_cast<std::int64_t>(block.size()));
    sum.add(block.data(), block.size());
  }
  std::byte stored[4];
  file.read_at(end, stored, 4);
  if (big_endian_at(stored) != sum.value())
    throw bad_input(fmt::format("{} is damaged: the {} bytes of its chunk {} at byte {} do not match their checksum",
                                file.path(), length, quoted(kind), begin));
}

void check_header(const InputFile& file) {
  const PngHeader header = png_header(file);
  if (header.w < 1 || header.w > largest_extent || header.h < 1 || header.h > largest_extent)
    throw bad_input(fmt::format("{}: its header says {} rows and {} columns; a PNG file is read with 1 to {} of each",
                                file.path(), header.h, header.w, largest_extent));
  const int bits = header.bits, color = header.color;
  const bool few = bits == 1 || bits == 2 || bits == 4, many = bits == 16;
  const bool known = color == 0   ? few || bits == 8 || many
                     : color == 3 ? few || bits == 8
                                  : (color == 2 || color == 4 || color == 6) && (bits == 8 || many);
  if (!known || header.compression != 0 || header.filter != 0 || header.interlacing > 1)
    throw bad_input(
        fmt::format("{} is damaged: its header says {} bits of the colour type {}, compression {}, filter {} and "
                    "interlacing {}, which PNG has not",
                    file.path(), bits, color, header.compression, header.filter, header.interlacing));
}

}  // namespace

PngHeader png_header(const InputFile& file) {
  std::byte header[header_bytes];
  file.read_at(signature_bytes + 8, header, header_bytes);
  const auto byte = [&header](std::size_t i) { return std::to_integer<int>(header[i]); };
  return {.w = big_endian_at(header),
          .h = big_endian_at(header + 4),
          .bits = byte(8),
          .color = byte(9),
          .compression = byte(10),
          .filter = byte(11),
          .interlacing = byte(12)};
}

PngChunks::PngChunks(const InputFile& file) : file_(file), at_(signature_bytes) {}

std::optional<PngChunk> PngChunks::next() {
  if (is_at_end_) return std::nullopt;
  const std::int64_t rest = file_.size() - at_ - 12;
  PngChunk chunk;
  if (rest >= 0) {
    chunk = chunk_at(file_, at_);
    if (at_ == signature_bytes && (chunk.kind != "IHDR" || chunk.length != header_bytes))
      throw bad_input(fmt::format("{} is damaged: it begins with {} bytes of {}, where PNG has {} of \"IHDR\"",
                                  file_.path(), chunk.length, quoted(chunk.kind), header_bytes));
  }
  if (rest < chunk.length) throw bad_input(fmt::format("{} is damaged or cut short: it has no end", file_.path()));
  check_sum(file_, at_, chunk.length, chunk.kind);
  if (at_ == signature_bytes) check_header(file_);
  is_at_end_ = chunk.kind == "IEND";
  at_ = end_of(chunk);
  return chunk;
}

void check_png(const InputFile& file) {
  PngChunks chunks(file);
  while (chunks.next()) {
  }
}

std::int64_t frames_of_png(const InputFile& file) {
  for (std::int64_t at = signature_bytes;;) {
    const PngChunk chunk = chunk_at(file, at);
    if (chunk.kind == "acTL" && chunk.length == 8) {
      std::byte frames[4];
      file.read_at(at + 8, frames, 4);
      return std::max<std::uint32_t>(big_endian_at(frames), 1);
    }
    if (chunk.kind == "IDAT" || chunk.kind == "IEND") return 1;
    at = end_of(chunk);
  }
}

std::string exif_behind_pixels(const InputFile& file) {
  bool is_behind_pixels = false;
  for (std::int64_t at = signature_bytes;;) {
    const PngChunk chunk = chunk_at(file, at);
    const std::string& kind = chunk.kind;
    if (kind == "IEND" || (kind == "eXIf" && (!is_behind_pixels || chunk.length > most_exif_bytes))) return {};
    if (kind == "eXIf") {
      std::string block(chunk.length, '\0');
      file.read_at(at + 8, block.data(), chunk.length);
      return block;
    }
    is_behind_pixels = is_behind_pixels || kind == "IDAT";
    at = end_of(chunk);
  }
}

}  // namespace omniconv::image
