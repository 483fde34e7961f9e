#include "operations/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/problem_rules.h"
#include "omniconv/error.h"

namespace omniconv::operations {

Tuning Tuning::parse(std::string_view text) {
  Tuning tuning;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    std::int64_t value = 0;
    const char* const begin = equals == std::string_view::npos ? nullptr : word.data() + equals + 1;
    const char* const end = word.data() + word.size();
    if (name.empty() || begin == nullptr || begin == end || std::from_chars(begin, end, value).ptr != end)
      throw bad_input(fmt::format("tuning {}: write NAME=INTEGER, as in tile_m=128", shown(word)));
    if (tuning.find(name)) throw bad_input(fmt::format("tuning {}: {} stands twice", shown(word), shown(name)));
    tuning.values_.emplace_back(name, value);
  }
  return tuning;
}

std::optional<std::int64_t> Tuning::find(std::string_view name) const {
  for (const auto& [known, value] : values_)
    if (known == name) return value;
  return std::nullopt;
}

std::string Tuning::to_text() const {
  std::string text;
  for (const auto& [name, value] : values_) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

Tuning Tuning::inner(std::string_view prefix) const {
  Tuning inner;
  for (const auto& [name, value] : values_)
    if (name.starts_with(prefix) && name.size() > prefix.size() && name[prefix.size()] == '.')
      inner.values_.emplace_back(name.substr(prefix.size() + 1), value);
  return inner;
}

Tuning Tuning::prefixed(std::string_view prefix) const {
  Tuning outer;
  for (const auto& [name, value] : values_) outer.values_.emplace_back(fmt::format("{}.{}", prefix, name), value);
  return outer;
}

std::string names_refusal(const Tuning& wanted, const Tuning& first) {
  std::string names;
  for (const auto& [name, value] : first.values()) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  for (const auto& [name, value] : wanted.values())
    if (!first.find(name))
      return first.is_empty() ? fmt::format("tuning {}: this solver has nothing to tune", shown(name))
                              : fmt::format("tuning {}: this solver is tuned by {}", shown(name), names);
  for (const auto& [name, value] : first.values())
    if (!wanted.find(name)) return fmt::format("tuning: {} is missing; this solver is tuned by {}", name, names);
  return {};
}

}  // namespace omniconv::operations
