// Problem text, whatever the operation: words of a line, the tables by which a problem's words and letters are read,
// and how it is printed. docs/notation.md has the notation.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem_rules.h"
#include "core/suggest.h"

namespace omniconv::text {

// A refusal on its way to the place that knows the line, and so the column.
struct Refusal {
  const char* at;
  std::string message;
};
[[noreturn]] void refuse(std::string_view found, std::string_view expected);

// The words of a line, as views into it.
struct Words {
  std::vector<std::string_view> words;                // without the name
  std::string_view quoted_name;                       // with its quotes; empty when there is none
  std::string_view end;                               // empty, behind the last word
  std::span<const std::string_view> operations = {};  // the words that name one
};
Words split(std::string_view line);
[[noreturn]] void refuse_missing(const Words& line, std::string_view expected);

// Where each thing was said; nothing is said twice.
class Places {
 public:
  void claim(std::string_view what, std::string_view found);

  // Empty where it was not said.
  std::string_view find(std::string_view what) const {
    for (const auto& [known, where] : places_)
      if (known == what) return where;
    return {};
  }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> places_;
};

// Letters of a geometry word. Those of one meaning exclude each other unless they are of the same form.
template <typename T>
struct LetterGroup {
  std::string_view letters, meaning;
  int form;
  bool required;
  std::array<std::int64_t T::*, 4> members;  // all that it sets; the rest null
};

// A word that stands for itself: one of several that say `what`.
template <typename T>
struct ExactWord {
  std::string_view text, what;
  void (*apply)(T&);
};

// How the problems of an operation are written.
template <typename T>
struct Notation {
  std::string_view operation;  // the word that names it; empty where it may be left out
  std::span<const ExactWord<T>> words;
  std::span<const LetterGroup<T>> letters;
};

template <typename T>
std::string list_letters(std::span<const LetterGroup<T>> groups) {
  std::string text;
  for (const auto& group : groups) text += fmt::format("{}{}", text.empty() ? "" : " ", group.letters);
  return text;
}

// The longest beginning of the text that is made of letters from first to last.
std::string_view leading(std::string_view text, char first, char last);
std::int64_t read_number(std::string_view letters, std::string_view digits, std::string_view rest);

// One word of geometry. `exact_words` are what else it might have been meant to be.
template <typename T>
void read_geometry(std::string_view word, std::span<const LetterGroup<T>> groups,
                   std::span<const std::string_view> exact_words, T& problem, Places& places) {
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view letters = leading(rest, 'a', 'z');
    const std::string_view digits = leading(rest.substr(letters.size()), '0', '9');
    const std::string_view pair = rest.substr(0, letters.size() + digits.size());
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.letters == letters; });
    if (group == groups.end() && rest.size() == word.size())
      refuse(word, fmt::format("expected letters with numbers (of {}) or a known word; {}", list_letters<T>(groups),
                               suggest(word, exact_words)));
    if (group == groups.end()) refuse(rest, fmt::format("expected letters of {}", list_letters<T>(groups)));
    const std::int64_t value = read_number(letters, digits, rest.substr(letters.size()));
    for (const auto& other : groups) {
      if (other.meaning != group->meaning || other.form == group->form) continue;
      if (const std::string_view before = places.find(other.letters); !before.empty())
        refuse(pair, fmt::format("expected {} to be said in one way, and {} was given before", group->meaning,
                                 shown(before)));
    }
    places.claim(letters, pair);
    for (const auto member : group->members)
      if (member != nullptr) problem.*member = value;
    rest.remove_prefix(pair.size());
  }
}

// Which required letters may be missing: none, or any (they are left 0, for arrays to say them).
enum class Completeness : std::uint8_t { whole, partial };

template <typename T>
void require_letters(const Words& line, std::span<const LetterGroup<T>> groups, const Places& places) {
  std::string missing;
  for (const auto& group : groups)
    if (group.required && places.find(group.letters).empty())
      missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", group.letters, group.meaning);
  if (!missing.empty()) refuse_missing(line, missing);
}

// What every kind of problem ends with: `rule` is the first that it breaks.
template <typename T>
T finish(T problem, const Words& line, std::span<const LetterGroup<T>> groups, const Places& places,
         Completeness completeness, std::optional<BrokenRule> (*rule)(const T&)) {
  if (!line.quoted_name.empty()) problem.name = line.quoted_name.substr(1, line.quoted_name.size() - 2);
  if (completeness == Completeness::partial) {  // 0 stands for what is left out, and cannot be written
    for (const auto& group : groups)
      if (const std::string_view said = places.find(group.letters);
          group.required && !said.empty() && problem.*group.members[0] == 0)
        refuse(said, fmt::format("{} must be at least 1", group.meaning));
    return problem;
  }
  require_letters(line, groups, places);
  if (const auto broken = rule(problem)) {
    std::string_view blamed = broken->word == "name" ? line.quoted_name : places.find(broken->word);
    // A stride of one axis may have been said for both.
    if (blamed.empty()) blamed = places.find(broken->word.substr(0, 1));
    if (blamed.empty()) blamed = line.words.front();
    refuse(blamed, broken->message);
  }
  return problem;
}

template <typename T>
T read_words(const Words& line, const Notation<T>& notation, Places& places) {
  std::vector<std::string_view> names(line.operations.begin(), line.operations.end());
  for (const auto& word : notation.words) names.push_back(word.text);
  T problem;
  for (const std::string_view word : line.words) {
    if (word == notation.operation) continue;
    const auto known =
        std::find_if(notation.words.begin(), notation.words.end(), [&](const auto& e) { return e.text == word; });
    if (known == notation.words.end()) {
      read_geometry<T>(word, notation.letters, names, problem, places);
      continue;
    }
    places.claim(known->what, word);
    known->apply(problem);
  }
  return problem;
}

// Parts of printed text; what is empty is left out.
std::string join_words(std::initializer_list<std::string_view> words);
std::string in_quotes(const std::string& name);
// "letters" and the value, unless that is the usual one.
std::string unless(std::int64_t value, std::int64_t usual, std::string_view letters);
// A number of both axes, or one of each.
std::string two_axes(char letter, std::int64_t h, std::int64_t w, std::int64_t usual);
struct Padding {
  std::int64_t top, bottom, left, right;
};
std::string padding(const Padding& padding);

}  // namespace omniconv::text
