// The rules that problems of all operations keep, shared by validation and by the parser, which adds the column; and
// how found text is shown.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "omniconv/types.h"

namespace omniconv {

// No array of a problem may hold more bytes. Below it, index arithmetic in 64 bits has room to spare (sums of two
// extents, twice an extent, strides in bytes), and no machine comes near it.
inline constexpr std::int64_t largest_array_bytes = std::int64_t{1} << 60;
// Bytes of a problem's name, and of its kernel's.
inline constexpr std::size_t longest_name = 1000;

struct BrokenRule {
  std::string_view word;  // what in the text says it: letters of the notation ("h", "uh"), "type", "kernel" or "name"
  std::string message;    // field, value and rule
};
// Throws bad_input where a rule of the operation's problems is broken.
void require_unbroken(std::string_view operation, const std::optional<BrokenRule>& broken);

// A number of a problem: what the text calls it, what errors call it, and the least that it may be.
template <typename T>
struct Field {
  std::string_view letters, name;
  std::int64_t T::*member;
  std::int64_t least;
};

template <typename T>
std::optional<BrokenRule> extent_rule(const T& problem, std::span<const Field<T>> fields) {
  for (const Field<T>& field : fields)
    if (problem.*field.member < field.least)
      return BrokenRule{field.letters,
                        fmt::format("{} is {}: must be at least {}", field.name, problem.*field.member, field.least)};
  return std::nullopt;
}

std::optional<BrokenRule> type_rule(std::string_view what, DataType type, std::initializer_list<DataType> allowed);
// Of arrays of networks: f32, f64, f16, bf16, tf32.
std::optional<BrokenRule> network_type_rule(DataType type);

struct Extent {
  std::string_view letters, name;
  std::int64_t value;
};
// Extents are at least 1. The word to blame is the largest of them.
std::optional<BrokenRule> array_rule(std::string_view array, std::initializer_list<Extent> extents, std::int64_t bytes);

std::optional<BrokenRule> name_rule(const std::string& name);

// A window that slides along an axis.
struct WindowAxis {
  std::string_view padded, reach;  // for errors: "h with its padding", "r with its dilation"
  std::int64_t extent, before, after, taps, dilation, stride;
};
// floor((extent + before + after - dilation * (taps - 1) - 1) / stride) + 1, of numbers that were checked; throws where
// it passes 2^63.
std::int64_t output_extent(const WindowAxis& axis);

// True when parse_border() is the one to judge the word: a border's name, or an ambiguous one, and what follows it.
bool is_border_word(std::string_view text);

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
  const auto lower = [](char letter) {
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

// In single quotes, cut after 60 bytes, anything but printable ASCII as \xNN: hostile text stays one short line.
std::string shown(std::string_view text);

}  // namespace omniconv
