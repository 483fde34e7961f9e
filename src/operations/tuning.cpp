#include "operations/tuning.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
    const char* const end = word.data() + word.size();
    const char* const begin = equals == std::string_view::npos ? end : word.data() + equals + 1;
    const std::from_chars_result read = std::from_chars(begin, end, value);
    if (name.empty() || begin == end || read.ptr != end || read.ec != std::errc())
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

std::int64_t Tuning::at(std::string_view name) const {
  if (const std::optional<std::int64_t> value = find(name)) return *value;
  throw bad_input(fmt::format("tuning: {} is missing", name));
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

std::vector<Tunable> prefixed(std::string_view prefix, std::span<const Tunable> domain) {
  std::vector<Tunable> outer;
  for (const Tunable& one : domain) outer.push_back({fmt::format("{}.{}", prefix, one.name), one.values});
  return outer;
}

std::string domain_refusal(const Tuning& tuning, std::span<const Tunable> domain) {
  std::string names;
  for (const Tunable& one : domain) names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  for (const auto& [name, value] : tuning.values())
    if (std::none_of(domain.begin(), domain.end(), [&, &wanted = name](const auto& one) { return one.name == wanted; }))
      return domain.empty() ? fmt::format("tuning {}: this solver has nothing to tune", shown(name))
                            : fmt::format("tuning {}: this solver is tuned by {}", shown(name), names);
  for (const Tunable& one : domain) {
    const std::optional<std::int64_t> value = tuning.find(one.name);
    if (!value) return fmt::format("tuning: {} is missing; this solver is tuned by {}", one.name, names);
    if (std::find(one.values.begin(), one.values.end(), *value) == one.values.end())
      return fmt::format("tuning {}={}: must be {}{}", one.name, *value, one.values.size() == 1 ? "" : "one of ",
                         fmt::join(one.values, ", "));
  }
  return {};
}

void for_each_tuning(std::span<const Tunable> domain, const std::function<void(const Tuning&)>& visit) {
  std::vector<std::size_t> at(domain.size());
  const auto advance = [&] {
    for (std::size_t i = domain.size(); i-- > 0;) {
      if (++at[i] < domain[i].values.size()) return true;
      at[i] = 0;
    }
    return false;
  };
  do {
    Tuning one;
    for (std::size_t i = 0; i < domain.size(); ++i) one.set(domain[i].name, domain[i].values[at[i]]);
    visit(one);
  } while (advance());
}

}  // namespace omniconv::operations
