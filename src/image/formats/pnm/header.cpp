#include "image/formats/pnm/header.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "core/checked.h"
#include "core/problem_rules.h"
#include "image/formats/pnm/pnm.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

constexpr std::int64_t header_buffer_bytes = 1024;
constexpr std::size_t line_limit = 4096;
constexpr std::size_t tuple_type_limit = 1024;  // well below, since it is written as one line

bool is_space(int c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

[[noreturn]] void cut_short(const InputFile& file) {
  throw bad_input(fmt::format("{} is cut short within its header", file.path()));
}

// Skips white space and comments; a comment ends its line.
int next_visible(ByteReader& bytes) {
  int c = bytes.next();
  while (is_space(c) || c == '#') {
    if (c == '#')
      while (c != '\n' && c != -1) c = bytes.next();
    if (c != -1) c = bytes.next();
  }
  return c;
}

// A word and the one byte of white space after it (or the comment that stands there).
std::string next_word(ByteReader& bytes, const InputFile& file) {
  std::string word;
  int c = next_visible(bytes);
  for (; c != -1 && !is_space(c) && c != '#'; c = bytes.next()) {
    word += static_cast<char>(c);
    if (word.size() > 64)
      throw bad_input(fmt::format("{}: its header has a word of more than 64 letters", file.path()));
  }
  if (c == '#')
    while (c != '\n' && c != -1) c = bytes.next();
  if (c == -1) cut_short(file);
  return word;
}

std::int64_t to_extent(std::string_view word, std::string_view what, const InputFile& file) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < 1)
    throw bad_input(fmt::format("{}: its header has {} for the {}; expected a whole number from 1", file.path(),
                                shown(word), what));
  return value;
}

std::int64_t to_max_value(std::string_view word, const InputFile& file) {
  const std::int64_t value = to_extent(word, "highest value", file);
  if (value > 65535)
    throw bad_input(
        fmt::format("{}: its header has {} for the highest value; it can be 1 to 65535", file.path(), value));
  return value;
}

void set_integer_type(PnmHeader& header) {
  header.info.type = header.max_value > 255 ? DataType::u16 : DataType::u8;
  if (header.max_value != 255 && header.max_value != 65535)
    header.info.max_value = static_cast<double>(header.max_value);
  header.swapped = header.max_value > 255 && std::endian::native == std::endian::little;
}

void read_pfm(PnmHeader& header, ByteReader& bytes, const InputFile& file) {
  const std::string scale = next_word(bytes, file);
  char* end = nullptr;
  const double value = std::strtod(scale.c_str(), &end);
  if (end != scale.c_str() + scale.size() || value == 0 || !std::isfinite(value))
    throw bad_input(fmt::format("{}: its header has {} for the scale; expected a number, negative for little-endian",
                                file.path(), shown(scale)));
  header.info.type = DataType::f32;
  header.info.format = "pfm";
  header.swapped = (value < 0) != (std::endian::native == std::endian::little);
}

std::string next_line(ByteReader& bytes, const InputFile& file) {
  std::string line;
  for (int c = bytes.next(); c != '\n'; c = bytes.next()) {
    if (c == -1) cut_short(file);
    line += static_cast<char>(c);
    if (line.size() > line_limit)
      throw bad_input(fmt::format("{}: its header has a line of more than {} letters", file.path(), line_limit));
  }
  return line;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && is_space(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

void read_pam(PnmHeader& header, ByteReader& bytes, const InputFile& file) {
  std::optional<std::int64_t> w, h, c, max_value;
  std::string tuple_type;
  const auto set = [&file](std::optional<std::int64_t>& field, std::string_view word, std::string_view value,
                           bool is_max_value) {
    if (field) throw bad_input(fmt::format("{}: its header has {} twice", file.path(), word));
    field = is_max_value ? to_max_value(value, file) : to_extent(value, word, file);
  };
  while (true) {
    const std::string line = next_line(bytes, file);
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    if (text == "ENDHDR") break;
    const std::size_t word_end = text.find_first_of(" \t");
    const std::string_view word = text.substr(0, word_end);
    const std::string_view value = word_end == std::string_view::npos ? "" : trimmed(text.substr(word_end));
    if (word == "WIDTH") {
      set(w, word, value, false);
    } else if (word == "HEIGHT") {
      set(h, word, value, false);
    } else if (word == "DEPTH") {
      set(c, word, value, false);
    } else if (word == "MAXVAL") {
      set(max_value, word, value, true);
    } else if (word == "TUPLTYPE") {
      if (!tuple_type.empty() && !value.empty()) tuple_type += ' ';
      tuple_type += value;
      if (tuple_type.size() > tuple_type_limit)
        throw bad_input(fmt::format("{}: its tuple type has more than {} letters", file.path(), tuple_type_limit));
    } else {
      throw bad_input(
          fmt::format("{}: its header has the line {}; expected WIDTH, HEIGHT, DEPTH, MAXVAL, TUPLTYPE or ENDHDR",
                      file.path(), shown(text)));
    }
  }
  if (!w || !h || !c || !max_value)
    throw bad_input(fmt::format("{}: its header has no {}", file.path(),
                                !w   ? "WIDTH"
                                : !h ? "HEIGHT"
                                : !c ? "DEPTH"
                                     : "MAXVAL"));
  header.info.w = *w;
  header.info.h = *h;
  header.info.c = *c;
  header.max_value = *max_value;
  header.info.format = "pam";
  if (*c >= 2 && tuple_type.ends_with("_ALPHA")) header.info.alpha_channel = static_cast<int>(*c - 1);
  header.info.metadata = std::make_shared<PamMetadata>(tuple_type);
  set_integer_type(header);
}

}  // namespace

std::int64_t PnmHeader::data_end(std::string_view source) const {
  if (kind == '4') {
    const std::string what = fmt::format("{}: the size of the image", source);
    return checked_add(data_offset, checked_multiply((info.w - 1) / 8 + 1, info.h, what), what);
  }
  std::int64_t bytes = raster_bytes(info, source);
  // Plain: a byte for each bit; for each number a digit and white space, just the two bytes that u16 takes anyway.
  if (is_plain() && !is_bits() && size_of(info.type) == 1) bytes = checked_multiply(bytes, 2, source);
  return checked_add(data_offset, bytes, source);
}

bool is_pnm(std::span<const std::byte> content) {
  const auto letter = [content](std::size_t i) { return std::to_integer<char>(content[i]); };
  if (content.size() < 3 || letter(0) != 'P') return false;
  const char kind = letter(1);
  return ((kind >= '1' && kind <= '7') || kind == 'F' || kind == 'f') && (is_space(letter(2)) || letter(2) == '#');
}

PnmHeader read_pnm_header(const InputFile& file, std::int64_t offset) {
  ByteReader bytes(file, offset, header_buffer_bytes);
  bytes.next();  // the P
  PnmHeader header;
  header.kind = static_cast<char>(bytes.next());
  header.info.format = "pnm";
  if (header.kind == '7') {
    if (bytes.next() != '\n') throw bad_input(fmt::format("{}: expected the end of the line after P7", file.path()));
    read_pam(header, bytes, file);
  } else {
    header.info.w = to_extent(next_word(bytes, file), "width", file);
    header.info.h = to_extent(next_word(bytes, file), "height", file);
    header.info.c = header.kind == '3' || header.kind == '6' || header.kind == 'F' ? 3 : 1;
    if (header.is_float()) {
      read_pfm(header, bytes, file);
    } else if (!header.is_bits()) {
      header.max_value = to_max_value(next_word(bytes, file), file);
      set_integer_type(header);
    }
  }
  header.data_offset = bytes.offset();
  return header;
}

}  // namespace omniconv::image
