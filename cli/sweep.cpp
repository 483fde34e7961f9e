#include "sweep.h"

#include <fmt/format.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/problem_rules.h"
#include "omniconv/error.h"
#include "operations/operation.h"

namespace omniconv::cli {
namespace {

constexpr std::string_view batch = "batch";
constexpr std::size_t most_problems = 10'000;
constexpr const char* form = "write LETTERS=FIRST:LAST:+STEP or LETTERS=FIRST:LAST:xFACTOR, as in rs=3:31:+2";

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The extents that a sweep's letters name, the longest first ("ph" and not "p" and "h"); a letter that begins none is
// one.
std::vector<std::string_view> split(std::string_view letters, const std::vector<std::string_view>& known) {
  std::vector<std::string_view> parts;
  while (!letters.empty()) {
    std::size_t length = letters == batch ? batch.size() : 1;
    for (const std::string_view one : known)
      if (letters.starts_with(one)) length = std::max(length, one.size());
    parts.push_back(letters.substr(0, length));
    letters.remove_prefix(length);
  }
  return parts;
}

Problem set(const Problem& problem, const Sweep& sweep, std::int64_t value) {
  const std::vector<std::string_view> known = problem.operation().letters();
  const std::vector<std::string_view> extents = split(sweep.letters, known);
  Problem changed = problem;
  for (auto extent = extents.begin(); extent != extents.end(); ++extent) {
    const std::string_view letters = *extent;
    if (std::find(known.begin(), known.end(), letters) == known.end())
      throw bad_input(fmt::format("--sweep {}: {} is no extent of {}: name one of {}", shown(sweep.letters),
                                  shown(letters), to_text(problem), fmt::join(known, ", ")));
    if (std::find(extents.begin(), extent, letters) != extent)
      throw bad_input(fmt::format("--sweep {}: {} stands twice: once is enough", shown(sweep.letters), shown(letters)));
    changed = problem.operation().with_letters(changed, letters, value);
  }
  validate(changed);
  return changed;
}

std::vector<Problem> swept(const std::vector<Problem>& problems, const Sweep& sweep) {
  std::vector<Problem> family;
  for (const Problem& problem : problems)
    for (const std::int64_t value : sweep.values) {
      if (family.size() == most_problems)
        throw bad_input(
            fmt::format("--sweep: these are more than {} problems: take larger steps or fewer sweeps", most_problems));
      family.push_back(set(problem, sweep, value));
    }
  return family;
}

}  // namespace

Sweep parse_sweep(std::string_view text) {
  const auto refuse = [&](const std::string& why) {
    return bad_input(fmt::format("--sweep {}: {}; {}", shown(text), why, form));
  };
  const std::size_t equals = text.find('='), first_colon = text.find(':'), last_colon = text.rfind(':');
  if (equals == std::string_view::npos || first_colon == last_colon || first_colon < equals)
    throw refuse("this is no sweep");
  Sweep sweep{.letters = std::string(text.substr(0, equals)), .values = {}};
  if (sweep.letters.empty()) throw refuse("no letter stands before '='");
  const bool of_padding = sweep.letters.starts_with('p');  // which may be none
  const std::string_view step_text = text.substr(last_colon + 1);
  const auto first = whole(text.substr(equals + 1, first_colon - equals - 1));
  const auto last = whole(text.substr(first_colon + 1, last_colon - first_colon - 1));
  const auto step = step_text.empty() ? std::nullopt : whole(step_text.substr(1));
  const bool adds = step_text.starts_with('+'), multiplies = step_text.starts_with('x');
  if (!first || *first < (of_padding && adds ? 0 : 1)) throw refuse("FIRST must be a whole number from 1");
  if (!last || *last < *first) throw refuse("LAST must be a whole number not below FIRST");
  if (!(adds && step && *step >= 1) && !(multiplies && step && *step >= 2))
    throw refuse("the step must be + and a whole number from 1, or x and one from 2");
  for (std::int64_t value = *first;; value = adds ? value + *step : value * *step) {
    if (sweep.values.size() == most_problems) throw refuse(fmt::format("these are more than {} values", most_problems));
    sweep.values.push_back(value);
    if (adds ? value > *last - *step : value > *last / *step) return sweep;
  }
}

std::vector<Problem> swept(const std::vector<Problem>& problems, const std::vector<std::string>& sweeps) {
  std::vector<Problem> family = problems;
  for (const std::string& text : sweeps) family = swept(family, parse_sweep(text));
  return family;
}

}  // namespace omniconv::cli
