#include "core/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace omniconv {
namespace {

constexpr std::size_t longest_compared = 64;  // longer text is near to no name, and need not be looked at
constexpr std::size_t most_suggested = 3;

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

// Insertions, deletions, replacements and exchanges of neighbours that lead from one to the other, ignoring case.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (lower(from[i - 1]) == lower(to[j - 1]) ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && lower(from[i - 1]) == lower(to[j - 2]) && lower(from[i - 2]) == lower(to[j - 1]))
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[to.size()];
}

bool is_beginning(std::string_view unknown, std::string_view name) {
  return unknown.size() <= name.size() && edit_distance(unknown, name.substr(0, unknown.size())) == 0;
}

// A beginning of three letters or more, of the name or of what follows a '/' in it, counts as near, however much is
// missing.
std::size_t distance(std::string_view unknown, std::string_view name) {
  const std::size_t edits = edit_distance(unknown, name);
  if (unknown.size() < 3 || edits == 0) return edits;
  for (std::string_view rest = name;; rest.remove_prefix(rest.find('/') + 1)) {
    if (is_beginning(unknown, rest)) return 1;
    if (rest.find('/') == std::string_view::npos) return edits;
  }
}

}  // namespace

std::string suggest(std::string_view unknown, std::span<const std::string_view> names) {
  struct Near {
    std::size_t distance;
    std::string_view name;
  };
  std::vector<Near> near;
  if (!unknown.empty() && unknown.size() <= longest_compared) {
    const std::size_t farthest = std::max<std::size_t>(1, unknown.size() / 3);
    for (const std::string_view name : names) {
      const std::size_t found = distance(unknown, name.substr(0, longest_compared));
      // Replacing every letter of a short word is no likeness.
      if (found <= farthest && found < std::max(unknown.size(), name.size())) near.push_back({found, name});
    }
  }
  if (near.empty()) return fmt::format("known are: {}", fmt::join(names, ", "));
  std::stable_sort(near.begin(), near.end(), [](const Near& a, const Near& b) { return a.distance < b.distance; });
  near.resize(std::min(near.size(), most_suggested), near.front());
  std::string text = fmt::format("did you mean {}", near.front().name);
  for (std::size_t i = 1; i < near.size(); ++i)
    text += fmt::format("{}{}", i + 1 == near.size() ? " or " : ", ", near[i].name);
  return text + "?";
}

}  // namespace omniconv
