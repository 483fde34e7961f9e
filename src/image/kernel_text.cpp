// Kernels as text: matrices, CSV and ImageMagick's form. And as .npy arrays.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "core/quoted.h"
#include "image/formats/npy/npy.h"
#include "image/input_file.h"
#include "image/kernel_text.h"
#include "omniconv/error.h"

namespace omniconv::image {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view imagemagick_form = "WIDTHxHEIGHT[+X+Y]: weights";

bool is_digit(char character) {
  return character >= '0' && character <= '9';
}

// Walks over a text and knows, when something is wrong, where it stands.
class Scanner {
 public:
  Scanner(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  std::size_t position() const { return position_; }
  bool at_end() const { return position_ == text_.size(); }
  // The character here, '\n' for every kind of line end, '\0' at the end of the text.
  char peek() const {
    if (at_end()) return '\0';
    return text_[position_] == '\r' ? '\n' : text_[position_];
  }
  std::string_view rest_of_line() const {
    return text_.substr(position_, text_.find_first_of("\r\n#", position_) - position_);
  }
  void skip(std::size_t count = 1) { position_ += count; }
  bool skip_blanks() {
    const std::size_t before = position_;
    while (peek() == ' ' || peek() == '\t') ++position_;
    return position_ != before;
  }
  bool at_line_end() const { return at_end() || peek() == '\n' || peek() == '#'; }
  // Skips a comment and the line's end.
  void next_line() {
    while (!at_end() && peek() != '\n') ++position_;
    if (text_.substr(position_).starts_with("\r\n")) ++position_;
    if (!at_end()) ++position_;
  }
  // Skips blanks, comments and line ends; says whether there were any.
  bool skip_space() {
    const std::size_t before = position_;
    for (skip_blanks(); !at_end() && at_line_end(); skip_blanks()) next_line();
    return position_ != before;
  }

  // What stands here, up to the next separator.
  std::string_view word() const {
    return text_.substr(position_, text_.find_first_of(std::string_view(" \t\r\n#,;:\0", 9), position_) - position_);
  }

  double number(std::string_view expected) {
    const std::string_view found = word();
    const std::string_view digits = found.substr(found.starts_with('+') ? 1 : 0);
    double value = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole =
        !digits.empty() && end == digits.data() + digits.size() && !(found[0] == '+' && digits[0] == '-');
    if (whole && code == std::errc::result_out_of_range)
      fail(position_, quoted(found), "a number that a double can hold");
    if (!whole || code != std::errc{}) fail(position_, here(), expected);
    if (!std::isfinite(value)) fail(position_, quoted(found), "a finite number");
    position_ += found.size();
    return value;
  }

  // A whole number of ImageMagick's form, without a sign, from `least` to `most`; `what` names it.
  std::int64_t whole_number(std::string_view what, std::int64_t least, std::int64_t most) {
    std::int64_t value = 0;
    const char* const begin = text_.data() + position_;
    const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), value);
    const auto length = static_cast<std::size_t>(end - begin);
    if (length == 0 || !is_digit(*begin) || code != std::errc{} || value < least || value > most)
      fail(position_, length == 0 ? here() : quoted({begin, length}),
           fmt::format("{}, a whole number from {} to {} ({})", what, least, most, imagemagick_form));
    position_ += length;
    return value;
  }

  // What stands here, in words for fail().
  std::string here() const {
    if (at_end()) return "the end of the text";
    if (at_line_end()) return peek() == '#' ? "a comment" : "the end of the line";
    const std::string_view found = word();
    return quoted(found.empty() ? text_.substr(position_, 1) : found);
  }

  [[noreturn]] void fail(std::size_t position, std::string_view found, std::string_view expected) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < position; ++i, ++column)
      if (text_[i] == '\n' || (text_[i] == '\r' && !text_.substr(i + 1).starts_with('\n'))) ++line, column = 0;
    throw bad_input(fmt::format("{}:{}:{}: found {}, expected {}", source_, line, column, found, expected));
  }

 private:
  std::string_view text_, source_;
  std::size_t position_ = 0;
};

// The words for a separator, which is ',', ';' or ' ' for blanks.
std::string_view separator_name(char separator) {
  return separator == ',' ? "\",\"" : separator == ';' ? "\";\"" : "spaces or tabs";
}

// Passes what separates two weights of a line. The first one in a text settles what the others must be.
void pass_separator(Scanner& scanner, char& settled, bool blanks_before) {
  const char next = scanner.peek();
  const bool mark = next == ',' || next == ';';
  if (!mark && !blanks_before) scanner.fail(scanner.position(), scanner.here(), "a separator");
  const char separator = mark ? next : ' ';
  if (settled == '\0') settled = separator;
  if (separator != settled) {
    const bool decimal_comma = settled == ';' && separator == ',';
    scanner.fail(scanner.position(), scanner.here(),
                 fmt::format("{} between weights, as before in this text{}", separator_name(settled),
                             decimal_comma ? "; a decimal point is written \".\"" : ""));
  }
  if (mark) scanner.skip();
}

Kernel parse_matrix(Scanner& scanner) {
  Kernel kernel;
  char separator = '\0';
  for (scanner.skip_space(); !scanner.at_end(); scanner.skip_space()) {
    if (kernel.r == largest_kernel_side)
      scanner.fail(scanner.position(), fmt::format("row {}", kernel.r + 1),
                   fmt::format("at most {} rows", largest_kernel_side));
    std::int64_t count = 0;
    while (true) {
      scanner.skip_blanks();
      if (count == largest_kernel_side)
        scanner.fail(scanner.position(), fmt::format("weight {} of a row", count + 1),
                     fmt::format("at most {} columns", largest_kernel_side));
      if (kernel.r > 0 && count == kernel.s)
        scanner.fail(scanner.position(), fmt::format("weight {} of the row", count + 1),
                     fmt::format("the end of the line: the first row has {} weights", kernel.s));
      kernel.weights.push_back(scanner.number("a number"));
      ++count;
      const bool blanks = scanner.skip_blanks();
      if (scanner.at_line_end()) break;
      pass_separator(scanner, separator, blanks);
    }
    if (kernel.r == 0) kernel.s = count;
    if (count != kernel.s)
      scanner.fail(scanner.position(), fmt::format("the end of the row after {} weights", count),
                   fmt::format("{}, as in the first row", kernel.s));
    ++kernel.r;
  }
  return kernel;
}

// The weights after "WIDTHxHEIGHT:", row by row, separated by a comma, blanks or line ends.
void parse_imagemagick_weights(Scanner& scanner, Kernel& kernel) {
  const std::int64_t count = kernel.r * kernel.s;
  const std::string all = fmt::format("{} weights ({} columns, {} rows)", count, kernel.s, kernel.r);
  for (std::int64_t i = 0; i < count; ++i) {
    bool separated = scanner.skip_space() || i == 0;
    if (i > 0 && scanner.peek() == ',') {
      separated = true;
      scanner.skip();
      scanner.skip_space();
    }
    if (scanner.at_end()) scanner.fail(scanner.position(), fmt::format("the end of the text after {} weights", i), all);
    if (scanner.peek() == ';')
      scanner.fail(scanner.position(), "\";\"", "one kernel: ImageMagick's lists of kernels are not supported");
    if (!separated) scanner.fail(scanner.position(), scanner.here(), "\",\" or a space between weights");
    const std::string_view word = scanner.word();
    std::string lower(word.substr(0, 4));
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    if (lower == "nan" || word == "-")
      scanner.fail(scanner.position(), quoted(word),
                   "a number: ImageMagick's nan and - leave a pixel out of the kernel's shape, which is not supported; "
                   "write 0 where a weight of 0 is meant");
    kernel.weights.push_back(scanner.number("a number"));
  }
  scanner.skip_space();
  if (scanner.peek() == ';')
    scanner.fail(scanner.position(), "\";\"", "one kernel: ImageMagick's lists of kernels are not supported");
  if (!scanner.at_end()) scanner.fail(scanner.position(), scanner.here(), fmt::format("the end after {}", all));
}

Kernel parse_imagemagick(Scanner& scanner) {
  Kernel kernel;
  scanner.skip_space();
  const auto expect = [&](bool met, std::string_view expected) {
    if (!met) scanner.fail(scanner.position(), scanner.here(), fmt::format("{} ({})", expected, imagemagick_form));
  };
  expect(is_digit(scanner.peek()), "the kernel's width");
  kernel.s = scanner.whole_number("the kernel's width", 1, largest_kernel_side);
  expect(scanner.peek() == 'x' || scanner.peek() == 'X', "\"x\" and the kernel's height");
  scanner.skip();
  kernel.r = scanner.whole_number("the kernel's height", 1, largest_kernel_side);
  if (scanner.peek() == '+') {
    scanner.skip();
    kernel.anchor_x = scanner.whole_number("the anchor's column", 0, kernel.s - 1);
    expect(scanner.peek() == '+', "\"+\" and the anchor's row");
    scanner.skip();
    kernel.anchor_y = scanner.whole_number("the anchor's row", 0, kernel.r - 1);
  }
  if (scanner.peek() == '@' || scanner.peek() == '<' || scanner.peek() == '>')
    scanner.fail(scanner.position(), scanner.here(), "\":\": ImageMagick's lists of turned kernels are not supported");
  scanner.skip_blanks();
  expect(scanner.peek() == ':', "\":\" and the weights");
  scanner.skip();
  parse_imagemagick_weights(scanner, kernel);
  return kernel;
}

// A matrix never holds a colon, nor a number followed by an x.
bool is_imagemagick_form(std::string_view first_line) {
  const std::size_t digits =
      static_cast<std::size_t>(std::find_if_not(first_line.begin(), first_line.end(), is_digit) - first_line.begin());
  const bool sized = digits > 0 && digits < first_line.size() && (first_line[digits] | 0x20) == 'x';
  return sized || first_line.find(':') != std::string_view::npos;
}

Kernel parse_npy(std::string_view content, std::string_view source) {
  const auto bytes = std::as_bytes(std::span(content));
  const NpyHeader header = parse_npy_header(bytes, source, true);
  if (header.shape.size() != 2)
    throw bad_input(fmt::format("{}: an array of {} dimensions; a kernel is an array of 2, rows and columns", source,
                                header.shape.size()));
  check_npy_size(header, std::ssize(content), source);
  Kernel kernel{.r = header.shape[0], .s = header.shape[1]};
  const auto size = static_cast<std::size_t>(size_of(header.type));
  kernel.weights.resize(static_cast<std::size_t>(kernel.r * kernel.s));
  const std::byte* from = bytes.data() + header.data_offset;
  for (double& weight : kernel.weights) {
    std::array<std::byte, 8> element;
    std::memcpy(element.data(), from, size);
    if (header.swapped) std::reverse(element.begin(), element.begin() + static_cast<std::ptrdiff_t>(size));
    weight = header.int64 ? static_cast<double>(std::bit_cast<std::int64_t>(element))
                          : load_element(header.type, element.data());
    from += size;
  }
  return kernel;
}

Kernel read_kernel_file(const std::string& path) {
  if (path.empty()) throw bad_input("kernel \"@\": a file name must follow \"@\"");
  const InputFile file(path);
  if (file.size() > largest_kernel_file)
    throw bad_input(
        fmt::format("{}: a kernel file of {} bytes; at most {} are read", path, file.size(), largest_kernel_file));
  const std::vector<std::byte> content = file.read_some(0, file.size());
  return parse_kernel_file({reinterpret_cast<const char*>(content.data()), content.size()}, path);
}

}  // namespace

Kernel parse_kernel_file(std::string_view content, std::string_view source) {
  Kernel kernel;
  if (is_npy(std::as_bytes(std::span(content)))) {
    kernel = parse_npy(content, source);
  } else {
    if (content.starts_with(byte_order_mark)) content.remove_prefix(byte_order_mark.size());
    Scanner scanner(content, source);
    scanner.skip_space();
    if (scanner.at_end()) throw bad_input(fmt::format("{}: holds no weights; at least one is needed", source));
    kernel = is_imagemagick_form(scanner.rest_of_line()) ? parse_imagemagick(scanner) : parse_matrix(scanner);
  }
  validate(kernel, source);
  return kernel;
}

Kernel parse_kernel(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    throw bad_input(fmt::format("no kernel is given: write a name (gaussian:9,1.5), @FILE, or {}", imagemagick_form));
  if (text[first] == '@') return read_kernel_file(std::string(text.substr(first + 1)));
  const bool literal = is_digit(text[first]) || std::strchr("+-.,;:", text[first]) != nullptr;
  if (!literal) return named_kernel(text);
  constexpr std::string_view source = "the kernel's text";
  Scanner scanner(text, source);
  Kernel kernel = parse_imagemagick(scanner);
  validate(kernel, source);
  return kernel;
}

}  // namespace omniconv::image
