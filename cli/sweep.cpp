#include "sweep.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/problem_rules.h"
#include "omniconv/error.h"

namespace omniconv::cli {
namespace {

constexpr std::string_view known_letters = "chwrs";
constexpr std::size_t most_problems = 10'000;
constexpr const char* form = "write LETTERS=FIRST:LAST:+STEP or LETTERS=FIRST:LAST:xFACTOR, as in rs=3:31:+2";

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::int64_t& extent(Filter2dProblem& problem, char letter) {
  switch (letter) {
    case 'c': return problem.c;
    case 'h': return problem.h;
    case 'w': return problem.w;
    case 'r': return problem.r;
    default: return problem.s;
  }
}

std::vector<Filter2dProblem> swept(const std::vector<Filter2dProblem>& problems, const Sweep& sweep) {
  std::vector<Filter2dProblem> family;
  for (const Filter2dProblem& problem : problems)
    for (const std::int64_t value : sweep.values) {
      if (family.size() == most_problems)
        throw bad_input(
            fmt::format("--sweep: these are more than {} problems: take larger steps or fewer sweeps", most_problems));
      family.push_back(problem);
      for (const char letter : sweep.letters) extent(family.back(), letter) = value;
      validate(family.back());
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
  for (std::size_t i = 0; i < sweep.letters.size(); ++i) {
    const std::string letter = shown(std::string_view(sweep.letters).substr(i, 1));
    if (known_letters.find(sweep.letters[i]) == std::string_view::npos)
      throw refuse(fmt::format("{} is no extent of a filtering problem (c, h, w, r or s)", letter));
    if (sweep.letters.find(sweep.letters[i]) != i) throw refuse(fmt::format("{} stands twice", letter));
  }
  const std::string_view step_text = text.substr(last_colon + 1);
  const auto first = whole(text.substr(equals + 1, first_colon - equals - 1));
  const auto last = whole(text.substr(first_colon + 1, last_colon - first_colon - 1));
  const auto step = step_text.empty() ? std::nullopt : whole(step_text.substr(1));
  if (!first || *first < 1) throw refuse("FIRST must be a whole number from 1");
  if (!last || *last < *first) throw refuse("LAST must be a whole number not below FIRST");
  const bool adds = step_text.starts_with('+'), multiplies = step_text.starts_with('x');
  if (!(adds && step && *step >= 1) && !(multiplies && step && *step >= 2))
    throw refuse("the step must be + and a whole number from 1, or x and one from 2");
  for (std::int64_t value = *first;; value = adds ? value + *step : value * *step) {
    if (sweep.values.size() == most_problems) throw refuse(fmt::format("these are more than {} values", most_problems));
    sweep.values.push_back(value);
    if (adds ? value > *last - *step : value > *last / *step) return sweep;
  }
}

std::vector<Filter2dProblem> swept(const std::vector<Filter2dProblem>& problems,
                                   const std::vector<std::string>& sweeps) {
  std::vector<Filter2dProblem> family = problems;
  for (const std::string& text : sweeps) family = swept(family, parse_sweep(text));
  return family;
}

}  // namespace omniconv::cli
