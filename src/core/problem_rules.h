// The rules of problems, shared by validate() and by the parser, which adds the column; and how found text is shown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "omniconv/problem.h"

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

std::optional<BrokenRule> first_broken_rule(const Filter2dProblem& problem);
std::optional<BrokenRule> first_broken_rule(const Conv2dProblem& problem);
std::optional<BrokenRule> first_broken_rule(const GemmProblem& problem);

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
