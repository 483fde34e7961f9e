#include "omniconv/types.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/problem_rules.h"
#include "core/suggest.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct TypeFacts {
  DataType type;
  std::string_view name;
  bool integer;
  double lowest, highest;
};

constexpr std::array<TypeFacts, 9> type_facts{{
    {DataType::u8, "u8", true, 0, 255},
    {DataType::u16, "u16", true, 0, 65535},
    {DataType::s16, "s16", true, -32768, 32767},
    {DataType::s32, "s32", true, -2147483648.0, 2147483647.0},
    {DataType::f16, "f16", false, -infinity, infinity},
    {DataType::bf16, "bf16", false, -infinity, infinity},
    {DataType::tf32, "tf32", false, -infinity, infinity},
    {DataType::f32, "f32", false, -infinity, infinity},
    {DataType::f64, "f64", false, -infinity, infinity},
}};

const TypeFacts& facts(DataType type) {
  for (const TypeFacts& entry : type_facts)
    if (entry.type == type) return entry;
  throw_no_such_type(type);
}

// In the order of BorderMode.
constexpr std::array<std::string_view, 6> border_names{"constant",   "replicate", "reflect",
                                                       "reflect101", "wrap",      "valid"};

constexpr std::string_view mirror_meanings =
    "ambiguous: SciPy ndimage's mirror does not repeat the edge (our reflect101), ImageMagick's and libvips's mirror "
    "repeats it (our reflect), OpenCV, NumPy pad and MATLAB have no mirror (OpenCV's REFLECT, NumPy's and MATLAB's "
    "symmetric repeat the edge: our reflect; OpenCV's REFLECT_101 and NumPy's reflect do not: our reflect101)";
constexpr std::string_view symmetric_meanings =
    "ambiguous: NumPy pad's and MATLAB's symmetric repeats the edge (our reflect), OpenCV, SciPy ndimage, ImageMagick "
    "and libvips have no symmetric (OpenCV's REFLECT, SciPy's reflect, ImageMagick's and libvips's mirror repeat the "
    "edge: our reflect; OpenCV's REFLECT_101, SciPy's mirror and NumPy's reflect do not: our reflect101)";
constexpr std::string_view our_reflections = "; say reflect (cba|abcd|dcb) or reflect101 (dcb|abcd|cba)";

Error border_error(std::string_view text, std::string_view problem) {
  return bad_input(fmt::format("border {}: {}", shown(text), problem));
}

double parse_border_value(std::string_view text, std::string_view digits) {
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status == std::errc::result_out_of_range) throw border_error(text, "the value must fit a double");
  if (status != std::errc() || end != digits.data() + digits.size())
    throw border_error(text, "the value must be a decimal number, as in constant:0 or constant:-0.5");
  if (!std::isfinite(value)) throw border_error(text, "the value must be finite");
  return value + 0.0;  // -0 becomes 0: one value, one text
}

}  // namespace

std::string_view name(DataType type) {
  return facts(type).name;
}

std::optional<DataType> parse_data_type(std::string_view text) {
  for (const TypeFacts& entry : type_facts)
    if (entry.name == text) return entry.type;
  return std::nullopt;
}

void throw_no_such_type(DataType type) {
  throw bad_input(fmt::format("data type number {}: no such type", static_cast<int>(type)));
}

bool is_integer(DataType type) {
  return facts(type).integer;
}
double lowest_value(DataType type) {
  return facts(type).lowest;
}
double highest_value(DataType type) {
  return facts(type).highest;
}

std::string_view name(BorderMode mode) {
  const auto position = static_cast<std::size_t>(mode);
  if (position >= border_names.size()) throw bad_input(fmt::format("border mode number {}: no such mode", position));
  return border_names[position];
}

std::string to_text(const Border& border) {
  if (border.mode != BorderMode::constant) return std::string(name(border.mode));
  return fmt::format("constant:{}", border.value == 0 ? 0.0 : border.value);
}

bool is_border_word(std::string_view text) {
  const std::string_view head = text.substr(0, text.find(':'));
  for (const std::string_view known : border_names)
    if (head == known) return true;
  return equal_ignoring_case(head, "mirror") || equal_ignoring_case(head, "symmetric");
}

Border parse_border(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view head = text.substr(0, colon);
  if (equal_ignoring_case(head, "mirror"))
    throw border_error(text, fmt::format("{}{}", mirror_meanings, our_reflections));
  if (equal_ignoring_case(head, "symmetric"))
    throw border_error(text, fmt::format("{}{}", symmetric_meanings, our_reflections));
  for (std::size_t position = 0; position < border_names.size(); ++position) {
    if (head != border_names[position]) continue;
    const auto mode = static_cast<BorderMode>(position);
    if (mode == BorderMode::constant) {
      if (colon == std::string_view::npos) throw border_error(text, "the value is missing: say constant:0");
      return {mode, parse_border_value(text, text.substr(colon + 1))};
    }
    if (colon != std::string_view::npos) throw border_error(text, fmt::format("{} takes no value", head));
    return {mode, 0};
  }
  throw border_error(text, fmt::format("unknown, {}", suggest(head, border_names)));
}

}  // namespace omniconv
