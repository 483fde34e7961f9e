// What a file is and how much its decoder holds, from its own first bytes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "image/formats/extension.h"
#include "image/formats/oiio/oiio.h"
#include "omniconv/error.h"

namespace omniconv::image::oiio {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::int64_t offset;
  std::string_view bytes;
  std::string_view plugin;
};
constexpr Signature signatures[] = {
    {0, "\x89PNG\r\n\x1a\n"sv, "png"},
    {0, "\xFF\xD8\xFF"sv, "jpeg"},
    {0, "II*\0"sv, "tiff"},
    {0, "MM\0*"sv, "tiff"},
    {0, "II+\0"sv, "tiff"},
    {0, "MM\0+"sv, "tiff"},
    {0, "\x76\x2F\x31\x01"sv, "openexr"},
    {8, "WEBP"sv, "webp"},
    {0, "BM"sv, "bmp"},
    {0, "GIF87a"sv, "gif"},
    {0, "GIF89a"sv, "gif"},
    {4, "jP  \r\n\x87\n"sv, "jpeg2000"},
    {0, "\xFF\x4F\xFF\x51"sv, "jpeg2000"},
    {0, "#?RADIANCE"sv, "hdr"},
    {0, "#?RGBE"sv, "hdr"},
    {0, "\x01\xDA"sv, "sgi"},
    {4, "ftyphei"sv, "heif"},
    {4, "ftyphev"sv, "heif"},
    {4, "ftypmif1"sv, "heif"},
    {4, "ftypmsf1"sv, "heif"},
    {4, "ftypavi"sv, "heif"},
};
// Their files begin as TIFF does, with a small preview for the first image.
constexpr std::string_view camera_raw[] = {"arw", "cr2", "dng", "erf", "nef", "nrw", "orf", "pef", "rw2", "sr2", "srw"};

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_text(std::string_view content) {
  return std::all_of(content.begin(), content.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || (byte >= 0x20 && byte != 0x7F) ||
           std::string_view("\t\n\r\f").find(c) != std::string_view::npos;
  });
}

// A number at a place of the file; 0 beyond its end.
std::uint64_t number_at(const InputFile& file, std::int64_t offset, int bytes, bool little_endian = false) {
  std::vector<std::byte> found = file.read_some(offset, bytes);
  if (static_cast<int>(found.size()) < bytes) return 0;
  if (little_endian) std::reverse(found.begin(), found.end());
  std::uint64_t result = 0;
  for (const std::byte byte : found) result = result << 8 | std::to_integer<std::uint64_t>(byte);
  return result;
}

std::int64_t saturated(double bytes) {
  return bytes < 0x1p62 ? static_cast<std::int64_t>(bytes) : std::int64_t{1} << 62;
}

// A progressive JPEG's coefficients, 2 bytes each, in blocks of 8 x 8 for each component.
std::int64_t progressive_jpeg_bytes(const InputFile& file) {
  for (std::int64_t at = 2; number_at(file, at, 1) == 0xFF;) {
    const std::uint64_t marker = number_at(file, at + 1, 1);
    if (marker == 0xFF) {
      ++at;
      continue;
    }
    const bool is_frame = marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame) {
      // Only these are decoded row by row.
      if (marker == 0xC0 || marker == 0xC1 || marker == 0xC9) return 0;
      const double h = static_cast<double>(number_at(file, at + 5, 2)),
                   w = static_cast<double>(number_at(file, at + 7, 2));
      const auto components = static_cast<std::int64_t>(number_at(file, at + 9, 1));
      double samples = 0, largest = 1;
      for (std::int64_t i = 0; i < components; ++i) {
        const std::uint64_t factors = number_at(file, at + 11 + 3 * i, 1);
        const double area = static_cast<double>((factors >> 4) * (factors & 15));
        samples += area;
        largest = std::max(largest, area);
      }
      return saturated((h + 16) * (w + 16) * samples / largest * 2);
    }
    if (marker == 0xDA || marker == 0xD9) return 0;
    at += 2 + static_cast<std::int64_t>(std::max<std::uint64_t>(number_at(file, at + 2, 2), 2));
  }
  return 0;
}

// JPEG 2000: four bytes for each sample and a little, beside the file itself.
std::int64_t jpeg2000_bytes(const InputFile& file) {
  std::int64_t codestream = 0;
  if (number_at(file, 0, 2) != 0xFF4F) {
    while (true) {
      const std::uint64_t length = number_at(file, codestream, 4), kind = number_at(file, codestream + 4, 4);
      if (kind == 0x6A703263) {  // jp2c
        codestream += length == 1 ? 16 : 8;
        break;
      }
      const std::uint64_t whole = length == 1 ? number_at(file, codestream + 8, 8) : length;
      if (whole < 8 || whole > static_cast<std::uint64_t>(file.size())) return 0;
      codestream += static_cast<std::int64_t>(whole);
    }
  }
  const std::int64_t size_marker = codestream + 4;
  const auto extent = [&](std::int64_t end, std::int64_t begin) {
    return std::max(0.0, static_cast<double>(number_at(file, size_marker + end, 4)) -
                             static_cast<double>(number_at(file, size_marker + begin, 4)));
  };
  const double samples = extent(4, 12) * extent(8, 16) * static_cast<double>(number_at(file, size_marker + 36, 2));
  return saturated(samples * 4.25 + static_cast<double>(file.size()));
}

// GIF: one canvas of four bytes a pixel.
std::int64_t gif_bytes(const InputFile& file) {
  const std::vector<std::byte> screen = file.read_some(6, 4);
  if (screen.size() < 4) return 0;
  const auto byte = [&screen](std::size_t i) { return std::to_integer<std::int64_t>(screen[i]); };
  return (byte(0) | byte(1) << 8) * (byte(2) | byte(3) << 8) * 4;
}

}  // namespace

std::string plugin_of(const InputFile& file) {
  const std::vector<std::byte> beginning = file.read_some(0, 512);
  const std::string_view content = text_of(beginning);
  const std::string extension = extension_of(file.path());
  for (const Signature& signature : signatures) {
    const auto offset = static_cast<std::size_t>(signature.offset);
    if (content.size() < offset || !content.substr(offset).starts_with(signature.bytes)) continue;
    if (signature.plugin == "webp" && !content.starts_with("RIFF")) continue;
    if (signature.plugin == "tiff" &&
        std::find(std::begin(camera_raw), std::end(camera_raw), extension) != std::end(camera_raw))
      throw bad_input(fmt::format("{} is a camera's raw file; develop it to TIFF first", file.path()));
    // On a damaged file, OpenImageIO 2.4 reads beyond what the decoder gave it.
    if (signature.plugin == "heif")
      throw bad_input(
          fmt::format("{} is a HEIF or AVIF image, which is not read; convert it to PNG or JPEG first", file.path()));
    return std::string(signature.plugin);
  }
  // Targa has no signature at its beginning, and version 1 none at its end.
  const std::vector<std::byte> end = file.read_some(std::max<std::int64_t>(0, file.size() - 18), 18);
  if (text_of(end) == "TRUEVISION-XFILE.\0"sv) return "targa";
  if (is_text(content)) throw bad_input(fmt::format("{} is not an image: its content is text", file.path()));
  if (extension == "tga") return "targa";
  throw bad_input(
      fmt::format("{} is not an image of a known format; read are PNG, JPEG, TIFF, OpenEXR, WebP, BMP, GIF, "
                  "JPEG 2000, Radiance HDR, SGI, Targa, PNM, PAM, PFM and .npy",
                  file.path()));
}

std::int64_t bytes_held_by_opening(const InputFile& file, const std::string& plugin) {
  if (plugin == "jpeg") return progressive_jpeg_bytes(file);
  if (plugin == "jpeg2000") return jpeg2000_bytes(file);
  if (plugin == "gif") return gif_bytes(file);
  return 0;
}

bool tiff_says_bits_per_sample(const InputFile& file, int page_index) {
  const bool little = number_at(file, 0, 1) == 'I';
  const bool big_tiff = number_at(file, 2, 2, little) == 43;
  const int word = big_tiff ? 8 : 4, count_bytes = big_tiff ? 8 : 2, entry_bytes = big_tiff ? 20 : 12;
  auto directory = static_cast<std::int64_t>(number_at(file, big_tiff ? 8 : 4, word, little));
  for (int page = 0;; ++page) {
    const std::uint64_t entries = number_at(file, directory, count_bytes, little);
    if (directory < 8 || entries == 0 || entries > 65535) return true;
    const std::int64_t first = directory + count_bytes;
    for (std::uint64_t i = 0; page == page_index && i < entries; ++i)
      if (number_at(file, first + static_cast<std::int64_t>(i) * entry_bytes, 2, little) == 258) return true;
    if (page == page_index) return false;
    directory = static_cast<std::int64_t>(
        number_at(file, first + static_cast<std::int64_t>(entries) * entry_bytes, word, little));
  }
}

}  // namespace omniconv::image::oiio
