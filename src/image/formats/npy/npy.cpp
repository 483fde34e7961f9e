#include "image/formats/npy/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <optional>

#include "core/checked.h"
#include "core/problem_rules.h"
#include "image/raster.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::string_view known_types = "|u1, <u2, <i2, <i4, <f2, <f4 and <f8, of either byte order";

// Keeps the shape (h, w, 1), which would otherwise become (h, w).
class NpyMetadata final : public Metadata {
 public:
  explicit NpyMetadata(std::size_t rank) : rank_(rank) {}
  std::size_t rank() const { return rank_; }

 private:
  std::size_t rank_;
};

// The header is a Python literal: a dictionary of three keys, in any order.
class HeaderText {
 public:
  HeaderText(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  [[noreturn]] void fail(std::string_view expected) const {
    throw bad_input(
        fmt::format("{}: its .npy header is damaged at character {}: expected {}", source_, position_ + 1, expected));
  }
  bool take(char wanted) {
    skip_space();
    if (position_ == text_.size() || text_[position_] != wanted) return false;
    ++position_;
    return true;
  }
  void expect(char wanted) {
    if (!take(wanted)) fail(fmt::format("'{}'", wanted));
  }
  std::string string() {
    skip_space();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    if (quote != '\'' && quote != '"') fail("a quoted string");
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) fail("a string that ends");
    const std::string result(text_.substr(position_ + 1, end - position_ - 1));
    position_ = end + 1;
    return result;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"})
      if (text_.substr(position_).starts_with(word)) {
        position_ += word.size();
        return word == "True";
      }
    fail("True or False");
  }
  std::int64_t extent() {
    skip_space();
    std::int64_t value = 0;
    const std::size_t begin = position_;
    for (; position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])); ++position_)
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text_[position_] - '0', &value))
        fail("an extent of the shape below 2^63");
    if (position_ == begin) fail("an extent of the shape, a whole number that is not negative");
    return value;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> result;
    expect('(');
    while (!take(')')) {
      result.push_back(extent());
      if (take(',')) continue;
      if (result.size() == 1) fail("',' after the one extent of the shape");
      expect(')');
      break;
    }
    return result;
  }
  void end() {
    skip_space();
    if (position_ != text_.size()) fail("nothing but white space after '}'");
  }

 private:
  void skip_space() {
    while (position_ < text_.size() && std::strchr(" \t\n\r", text_[position_]) && text_[position_] != '\0')
      ++position_;
  }

  std::string_view text_, source_;
  std::size_t position_ = 0;
};

void parse_type(const std::string& text, NpyHeader& header, std::string_view source, bool accept_int64) {
  std::string_view kind = std::string_view(text).substr(std::min<std::size_t>(1, text.size()));
  header.int64 = accept_int64 && kind == "i8";
  if (header.int64) kind = "f8";
  struct Known {
    std::string_view kind;
    DataType type;
  };
  static constexpr Known known[] = {{"u1", DataType::u8},  {"u2", DataType::u16}, {"i2", DataType::s16},
                                    {"i4", DataType::s32}, {"f2", DataType::f16}, {"f4", DataType::f32},
                                    {"f8", DataType::f64}};
  for (const Known& candidate : known) {
    if (kind != candidate.kind) continue;
    const char order = text[0];
    const bool single_byte = size_of(candidate.type) == 1;
    if (order != '<' && order != '>' && !(order == '|' && single_byte)) break;
    const bool big = order == '>';
    header.type = candidate.type;
    header.swapped = !single_byte && big == (std::endian::native == std::endian::little);
    return;
  }
  throw bad_input(fmt::format("{}: its elements are {}; read are {}; convert it with .astype() in NumPy", source,
                              shown(text), known_types));
}

std::size_t header_length(std::span<const std::byte> content, std::size_t& begin, std::string_view source) {
  const auto byte = [&content](std::size_t i) { return std::to_integer<std::size_t>(content[i]); };
  if (!is_npy(content))
    throw bad_input(fmt::format("{} is no .npy array: it does not begin with the bytes 93 4E 55 4D 50 59", source));
  if (content.size() < 10) throw bad_input(fmt::format("{} is cut short within its .npy header", source));
  const std::size_t major = byte(6), minor = byte(7);
  if (major < 1 || major > 3 || minor != 0)
    throw bad_input(fmt::format("{}: .npy version {}.{}; read are 1.0, 2.0 and 3.0", source, major, minor));
  begin = major == 1 ? 10 : 12;
  if (content.size() < begin) throw bad_input(fmt::format("{} is cut short within its .npy header", source));
  std::size_t length = byte(8) | byte(9) << 8;
  if (major > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > npy_header_limit)
    throw bad_input(fmt::format("{}: its .npy header claims {} bytes; an array of numbers needs at most {}", source,
                                length, npy_header_limit));
  if (content.size() < begin + length)
    throw bad_input(
        fmt::format("{} is cut short within its .npy header: {} bytes of {}", source, content.size(), begin + length));
  return length;
}

}  // namespace

std::string shape_text(std::span<const std::int64_t> shape) {
  constexpr std::size_t most = 8;
  return fmt::format("({}{})", fmt::join(shape.first(std::min(shape.size(), most)), ", "),
                     shape.size() > most ? ", ..."
                     : shape.size() == 1 ? ","
                                         : "");
}

bool is_npy(std::span<const std::byte> content) {
  return content.size() >= magic.size() && std::memcmp(content.data(), magic.data(), magic.size()) == 0;
}

std::int64_t NpyHeader::elements() const {
  std::int64_t result = 1;
  for (const std::int64_t extent : shape)
    result = checked_multiply(result, extent, "the number of elements of an array");
  return result;
}

NpyHeader parse_npy_header(std::span<const std::byte> content, std::string_view source, bool accept_int64) {
  std::size_t begin = 0;
  const std::size_t length = header_length(content, begin, source);
  HeaderText text({reinterpret_cast<const char*>(content.data()) + begin, length}, source);

  NpyHeader header;
  header.data_offset = begin + length;
  std::optional<std::string> type;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
  text.expect('{');
  while (!text.take('}')) {
    const std::string key = text.string();
    text.expect(':');
    if (key == "descr" && !type) {
      if (text.take('[')) throw bad_input(fmt::format("{}: an array of records; read are {}", source, known_types));
      type = text.string();
    } else if (key == "fortran_order" && !fortran_order) {
      fortran_order = text.boolean();
    } else if (key == "shape" && !shape) {
      shape = text.shape();
    } else {
      text.fail(fmt::format("each of the keys 'descr', 'fortran_order' and 'shape' once, not {}", shown(key)));
    }
    if (!text.take(',')) {
      text.expect('}');
      break;
    }
  }
  text.end();
  if (!type || !fortran_order || !shape) text.fail("the keys 'descr', 'fortran_order' and 'shape'");
  parse_type(*type, header, source, accept_int64);
  if (*fortran_order)
    throw bad_input(fmt::format(
        "{}: an array in Fortran order; save it in C order, numpy.save(name, numpy.ascontiguousarray(array))", source));
  header.shape = std::move(*shape);
  return header;
}

void check_npy_size(const NpyHeader& header, std::int64_t file_bytes, std::string_view source) {
  const std::string what = fmt::format("{}: the size of the array", source);
  std::int64_t needed = size_of(header.type);
  for (const std::int64_t extent : header.shape) needed = checked_multiply(needed, extent, what);
  needed = checked_add(needed, static_cast<std::int64_t>(header.data_offset), what);
  if (file_bytes != needed)
    throw bad_input(fmt::format("{} {}: the shape {} of {} needs a file of {} bytes, this one has {}", source,
                                file_bytes < needed ? "is cut short" : "goes on after its array",
                                shape_text(header.shape), name(header.type), needed, file_bytes));
}

std::string npy_header_text(DataType type, std::span<const std::int64_t> shape) {
  const auto descriptor = [type]() -> std::string_view {
    switch (type) {
      case DataType::u8: return "u1";
      case DataType::u16: return "u2";
      case DataType::s16: return "i2";
      case DataType::s32: return "i4";
      case DataType::f16: return "f2";
      case DataType::f32: return "f4";
      case DataType::f64: return "f8";
      case DataType::bf16:
      case DataType::tf32: break;
    }
    throw bad_input(fmt::format(".npy has no type {}; write f32", name(type)));
  }();
  const char order = type == DataType::u8 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order, descriptor,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The elements begin at a multiple of 64 bytes.
  const std::size_t before = magic.size() + 4;
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header(magic);
  header += '\1';
  header += '\0';
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

std::unique_ptr<ImageReader> open_npy(std::shared_ptr<const InputFile> file) {
  const std::vector<std::byte> beginning = file->read_some(0, npy_header_limit + 12);
  const NpyHeader header = parse_npy_header(beginning, file->path());
  if (header.shape.size() != 2 && header.shape.size() != 3)
    throw bad_input(fmt::format("{}: an array of shape {}; an image is (rows, columns) or (rows, columns, channels)",
                                file->path(), shape_text(header.shape)));
  ImageInfo info;
  info.h = header.shape[0];
  info.w = header.shape[1];
  info.c = header.shape.size() == 3 ? header.shape[2] : 1;
  info.type = header.type;
  info.format = "npy";
  info.metadata = std::make_shared<NpyMetadata>(header.shape.size());
  raster_bytes(info, file->path());
  check_npy_size(header, file->size(), file->path());
  return make_raster_reader(std::move(file), info,
                            {.offset = static_cast<std::int64_t>(header.data_offset), .swapped = header.swapped});
}

std::unique_ptr<ImageWriter> create_npy(const std::string& path, const ImageInfo& like) {
  ImageInfo info = like;
  info.max_value = 0;
  const auto* metadata = dynamic_cast<const NpyMetadata*>(like.metadata.get());
  std::vector<std::int64_t> shape = {like.h, like.w};
  if (like.c != 1 || (metadata != nullptr && metadata->rank() == 3)) shape.push_back(like.c);
  return make_raster_writer(path, info, npy_header_text(like.type, shape), {});
}

}  // namespace omniconv::image
