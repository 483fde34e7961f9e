// Small files made byte by byte, of kinds that our own writers do not make.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace omniconv::image {

inline std::string big_endian(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 255);
  return text;
}

inline std::string little_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 255);
  return text;
}

// A chunk of PNG with its CRC-32.
inline std::string png_chunk(const std::string& kind, const std::string& data) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : kind + data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? 0xEDB88320u ^ (crc >> 1) : crc >> 1;
  }
  return big_endian(static_cast<std::uint32_t>(data.size())) + kind + data + big_endian(~crc);
}

// One stored block of zlib with its Adler-32.
inline std::string zlib_stored(const std::string& data) {
  std::uint32_t a = 1, b = 0;
  for (const char c : data) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  const auto length = static_cast<std::uint32_t>(data.size());
  return std::string("\x78\x01\x01", 3) + little_endian(length, 2) + little_endian(~length & 0xFFFF, 2) + data +
         big_endian(b << 16 | a);
}

// `rows` have their filter bytes.
inline std::string png(std::uint32_t w, std::uint32_t h, int bits, int color, int interlace, const std::string& rows,
                       const std::string& before = "") {
  std::string header = big_endian(w) + big_endian(h);
  for (const int byte : {bits, color, 0, 0, interlace}) header += static_cast<char>(byte);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", header) + before + png_chunk("IDAT", zlib_stored(rows)) +
         png_chunk("IEND", "");
}

// 2 x 2 of the colours (0, 0, 255) and (10, 20, 30), as below: 0 1 / 1 0.
inline std::string palette_png() {
  const std::string palette("\0\0\xFF\x0A\x14\x1E", 6);
  return png(2, 2, 8, 3, 0, std::string("\0\0\1\0\1\0", 6), png_chunk("PLTE", palette));
}

inline std::string palette_bmp() {
  const std::string palette("\xFF\0\0\0\x1E\x14\x0A\0", 8);  // blue first
  const std::string pixels("\1\0\0\0\0\1\0\0", 8);           // from the bottom, rows of four bytes
  const auto offset = static_cast<std::uint32_t>(14 + 40 + palette.size());
  return "BM" + little_endian(offset + static_cast<std::uint32_t>(pixels.size()), 4) + little_endian(0, 4) +
         little_endian(offset, 4) + little_endian(40, 4) + little_endian(2, 4) + little_endian(2, 4) +
         little_endian(1, 2) + little_endian(8, 2) + little_endian(0, 4) +
         little_endian(static_cast<std::uint32_t>(pixels.size()), 4) + little_endian(2835, 4) + little_endian(2835, 4) +
         little_endian(2, 4) + little_endian(2, 4) + palette + pixels;
}

// Entries of tag and value (type SHORT), and `long_entry`'s values at the end of the file; the pixels are one strip.
inline std::string tiff(std::vector<std::pair<std::uint32_t, std::uint32_t>> entries, const std::string& pixels,
                        std::uint32_t h, const std::vector<std::uint32_t>& color_map = {}) {
  const auto count = static_cast<std::uint32_t>(entries.size() + 4 + (color_map.empty() ? 0 : 1));
  const std::uint32_t pixels_at = 8 + 2 + 12 * count + 4;
  const auto map_at = static_cast<std::uint32_t>(pixels_at + pixels.size() + pixels.size() % 2);
  struct Entry {
    std::uint32_t tag, type, count, value;
  };
  std::vector<Entry> all;
  for (const auto& [tag, value] : entries) all.push_back({tag, 3, 1, value});
  all.push_back({257, 3, 1, h});
  all.push_back({273, 4, 1, pixels_at});
  all.push_back({278, 3, 1, h});
  all.push_back({279, 4, 1, static_cast<std::uint32_t>(pixels.size())});
  if (!color_map.empty()) all.push_back({320, 3, static_cast<std::uint32_t>(color_map.size()), map_at});
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j)
      if (all[j].tag < all[i].tag) std::swap(all[i], all[j]);
  std::string file = "II*" + std::string(1, '\0') + little_endian(8, 4) + little_endian(count, 2);
  for (const Entry& entry : all)
    file += little_endian(entry.tag, 2) + little_endian(entry.type, 2) + little_endian(entry.count, 4) +
            little_endian(entry.value, 4);
  file += little_endian(0, 4) + pixels + std::string(pixels.size() % 2, '\0');
  for (const std::uint32_t value : color_map) file += little_endian(value, 2);
  return file;
}

inline std::string palette_tiff() {
  std::vector<std::uint32_t> map(768);
  map[512] = 65535;  // blue of colour 0
  map[1] = 10 * 257;
  map[257] = 20 * 257;
  map[513] = 30 * 257;
  return tiff({{256, 2}, {258, 8}, {259, 1}, {262, 3}, {277, 1}}, std::string("\0\1\1\0", 4), 2, map);
}

// 4 x 2: white black white white / black black white black.
inline std::string bit_png() {
  return png(4, 2, 1, 0, 0, std::string("\0\xB0\0\x20", 4));
}

// Photometric 1: a set bit is white; 0: black.
inline std::string bit_tiff(std::uint32_t photometric, bool says_bits = true) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> entries = {{256, 4}, {259, 1}, {262, photometric}, {277, 1}};
  if (says_bits) entries.push_back({258, 1});
  return tiff(entries, photometric == 1 ? "\xB0\x20" : "\x4F\xDF", 2);
}

inline std::string cmyk_tiff() {
  return tiff({{256, 1}, {258, 8}, {259, 1}, {262, 5}, {277, 4}}, std::string("\1\2\3\4", 4), 1);
}

inline std::string lab_tiff() {
  return tiff({{256, 1}, {258, 8}, {259, 1}, {262, 8}, {277, 3}}, std::string("\1\2\3", 3), 1);
}

// 2 x 2 in the seven passes of Adam7: of these only the first, the sixth and the seventh have pixels.
inline std::string interlaced_png() {
  return png(2, 2, 8, 2, 1, std::string("\0\1\2\3\0\4\5\6\0\7\10\11\12\13\14", 15));
}

// 8 x 8 of four components, with tables of one code each and every coefficient zero.
inline std::string cmyk_jpeg() {
  std::string file("\xFF\xD8\xFF\xDB\0\x43\0", 7);
  file += std::string(64, '\1');
  file += std::string("\xFF\xC0\0\x14\x08\0\x08\0\x08\4", 10);
  for (char component = 1; component <= 4; ++component) file += std::string{component, '\x11', '\0'};
  for (const char table : {'\0', '\x10'})
    file += std::string("\xFF\xC4\0\x14", 4) + table + '\1' + std::string(15, '\0') + '\0';
  file += std::string("\xFF\xDA\0\x0E\4", 5);
  for (char component = 1; component <= 4; ++component) file += std::string{component, '\0'};
  return file + std::string("\0\x3F\0\0\xFF\xD9", 6);
}

// An ICC profile for RGB with one tag, a text of bytes that do not compress well: libpng overlooks very short profiles.
inline std::string color_profile() {
  std::string header = big_endian(756) + std::string(4, '\0') + big_endian(0x02100000) + "mntrRGB XYZ " +
                       std::string(12, '\0') + "acsp" + std::string(28, '\0') + big_endian(0xF6D6) +
                       big_endian(0x10000) + big_endian(0xD32D);
  header.resize(128);
  std::string text = "text" + std::string(4, '\0');
  for (std::uint32_t i = 0; text.size() < 612; ++i) text += static_cast<char>('a' + i * i * 7 % 26);
  return header + big_endian(1) + "cprt" + big_endian(144) + big_endian(612) + text;
}

// A chunk of RIFF.
inline std::string riff_chunk(const std::string& kind, const std::string& data) {
  return kind + little_endian(static_cast<std::uint32_t>(data.size()), 4) + data + std::string(data.size() % 2, '\0');
}

// An animation of w x h pixels whose frames, whole WebP files of one image without any container, replace each other.
inline std::string webp_animation(std::uint32_t w, std::uint32_t h, const std::vector<std::string>& frames) {
  const std::string extents = little_endian(w - 1, 3) + little_endian(h - 1, 3);
  std::string chunks = riff_chunk("VP8X", little_endian(0x12, 4) + extents) +  // animated, with opacity
                       riff_chunk("ANIM", std::string(6, '\0'));
  for (const std::string& frame : frames)  // at (0, 0), for 100 ms, not blended
    chunks += riff_chunk("ANMF", std::string(6, '\0') + extents + little_endian(100, 3) + '\2' + frame.substr(12));
  return riff_chunk("RIFF", "WEBP" + chunks);
}

}  // namespace omniconv::image
