#include "core/problem_words.h"

#include <fmt/ranges.h>

#include <charconv>

namespace omniconv::text {
namespace {

constexpr std::size_t longest_line = 4096;  // bytes; the longest problem there is, printed, takes less

}  // namespace

void refuse(std::string_view found, std::string_view expected) {
  throw Refusal{found.data(), fmt::format("found {}; {}", shown(found), expected)};
}

Words split(std::string_view line) {
  if (line.size() > longest_line)
    throw Refusal{line.data() + longest_line,
                  fmt::format("found a line of {} bytes; expected at most {}", line.size(), longest_line)};
  Words result{{}, {}, line.substr(0, 0)};
  for (std::size_t i = 0; i < line.size() && line[i] != '#';) {
    if (line[i] == ' ' || line[i] == '\t') {
      ++i;
      continue;
    }
    std::size_t end = 0;
    if (line[i] == '"') {
      const std::size_t close = line.find('"', i + 1);
      if (close == std::string_view::npos) refuse(line.substr(i), "expected a closing quote");
      end = close + 1;
      if (!result.quoted_name.empty()) refuse(line.substr(i, end - i), "expected one name");
      result.quoted_name = line.substr(i, end - i);
      if (end < line.size() && std::string_view(" \t#").find(line[end]) == std::string_view::npos)
        refuse(line.substr(end), "expected a space behind the name");
    } else {
      end = std::min(line.find_first_of(" \t#\"", i), line.size());
      if (end < line.size() && line[end] == '"') refuse(line.substr(end), "expected a space before the name");
      result.words.push_back(line.substr(i, end - i));
    }
    result.end = line.substr(end, 0);
    i = end;
  }
  return result;
}

void Places::claim(std::string_view what, std::string_view found) {
  for (const auto& [known, where] : places_)
    if (known == what) refuse(found, fmt::format("expected one {}, and {} was given before", what, shown(where)));
  places_.emplace_back(what, found);
}

void refuse_missing(const Words& line, std::string_view expected) {
  throw Refusal{line.end.data(), fmt::format("found the end of the line; expected {}", expected)};
}

std::string_view leading(std::string_view text, char first, char last) {
  std::size_t length = 0;
  while (length < text.size() && text[length] >= first && text[length] <= last) ++length;
  return text.substr(0, length);
}

std::int64_t read_number(std::string_view letters, std::string_view digits, std::string_view rest) {
  if (digits.empty() && rest.empty()) refuse(letters, fmt::format("expected a number behind {}", letters));
  if (digits.empty()) refuse(rest, fmt::format("expected a number behind {}: digits only", letters));
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc()) refuse(digits, fmt::format("expected a number below 2^63 behind {}", letters));
  return value;
}

std::string in_quotes(const std::string& name) {
  return name.empty() ? "" : fmt::format("\"{}\"", name);
}

std::string join_words(std::initializer_list<std::string_view> words) {
  std::string text;
  for (const std::string_view word : words)
    if (!word.empty()) text += fmt::format("{}{}", text.empty() ? "" : " ", word);
  return text;
}

std::string unless(std::int64_t value, std::int64_t usual, std::string_view letters) {
  return value == usual ? "" : fmt::format("{}{}", letters, value);
}

std::string two_axes(char letter, std::int64_t h, std::int64_t w, std::int64_t usual) {
  if (h == w) return unless(h, usual, std::string_view(&letter, 1));
  return unless(h, usual, fmt::format("{}h", letter)) + unless(w, usual, fmt::format("{}w", letter));
}

std::string padding(const Padding& p) {
  if (p.top == p.bottom && p.left == p.right) return two_axes('p', p.top, p.left, 0);
  return unless(p.top, 0, "pt") + unless(p.bottom, 0, "pb") + unless(p.left, 0, "pl") + unless(p.right, 0, "pr");
}

}  // namespace omniconv::text
