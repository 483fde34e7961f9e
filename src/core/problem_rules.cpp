#include "core/problem_rules.h"

#include <algorithm>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

// Well-formed UTF-8 without control characters and quotes: the name goes into one line of text, and into JSON.
bool is_plain_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7F || lead == '"') return false;
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t j = 1; j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xC0) != 0x80) return false;
      code = (code << 6) | (next & 0x3Fu);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool control = code >= 0x80 && code < 0xA0;
    if (overlong || control || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return false;
    i += length;
  }
  return true;
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string result = "'";
  for (const char c : text.substr(0, longest)) {
    if (c >= 0x20 && c < 0x7F)
      result += c;
    else
      result += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  }
  return result + (text.size() > longest ? "...'" : "'");
}

void require_unbroken(std::string_view operation, const std::optional<BrokenRule>& broken) {
  if (broken) throw bad_input(fmt::format("{} problem: {}", operation, broken->message));
}

std::optional<BrokenRule> type_rule(std::string_view what, DataType type, std::initializer_list<DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) return std::nullopt;
  std::string names;
  for (const DataType one : allowed) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(one));
  const auto number = static_cast<int>(type);
  const std::string found = type <= DataType::f64 ? std::string(name(type)) : fmt::format("number {}", number);
  return BrokenRule{"type", fmt::format("{} is {}: must be one of {}", what, found, names)};
}

std::optional<BrokenRule> network_type_rule(DataType type) {
  return type_rule("type", type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16, DataType::tf32});
}

std::optional<BrokenRule> array_rule(std::string_view array, std::initializer_list<Extent> extents,
                                     std::int64_t bytes) {
  std::int64_t total = bytes;
  bool fits = true;
  for (const Extent& extent : extents)
    fits = fits && !__builtin_mul_overflow(total, extent.value, &total) && total <= largest_array_bytes;
  if (fits) return std::nullopt;
  std::string names, values;
  const Extent* largest = extents.begin();
  for (const Extent& extent : extents) {
    names += fmt::format("{}{}", names.empty() ? "" : "*", extent.name);
    values += fmt::format("{}{}", values.empty() ? "" : "*", extent.value);
    if (extent.value > largest->value) largest = &extent;
  }
  return BrokenRule{largest->letters, fmt::format("{} holds {} = {} elements of {} bytes: must be at most 2^60 bytes",
                                                  array, names, values, bytes)};
}

std::optional<BrokenRule> name_rule(const std::string& name) {
  if (name.size() > longest_name)
    return BrokenRule{"name", fmt::format("name of {} bytes: must be at most {}", name.size(), longest_name)};
  if (!is_plain_text(name))
    return BrokenRule{"name",
                      fmt::format("name is {}: must be UTF-8 without quotes and control characters", shown(name))};
  return std::nullopt;
}

std::int64_t output_extent(const WindowAxis& axis) {
  const std::int64_t padded = checked_add(checked_add(axis.extent, axis.before, axis.padded), axis.after, axis.padded);
  const std::int64_t reach = checked_add(checked_multiply(axis.dilation, axis.taps - 1, axis.reach), 1, axis.reach);
  const std::int64_t room = padded - reach;  // both are positive
  return room / axis.stride - (room % axis.stride < 0 ? 1 : 0) + 1;
}

}  // namespace omniconv
