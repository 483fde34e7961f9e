#include "checking/shrink.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "operations/operation.h"

namespace omniconv::checking {
namespace {

// A number of the text, with its letters: "h17" of "n2c3h17".
struct Pair {
  std::size_t at = 0, letters = 0, size = 0;  // its place, the length of its letters, and of both
  std::int64_t value = 0;
};

// Those of a word that is made of nothing else; none of any other word.
std::vector<Pair> pairs_of(std::string_view word, const std::vector<std::string_view>& known) {
  std::vector<Pair> pairs;
  for (std::size_t at = 0; at < word.size(); at += pairs.back().size) {
    Pair pair{.at = at};
    const std::string_view letters = text::leading(word.substr(at), 'a', 'z');
    const std::string_view digits = text::leading(word.substr(at + letters.size()), '0', '9');
    if (digits.empty() || std::find(known.begin(), known.end(), letters) == known.end()) return {};
    pair.letters = letters.size();
    pair.size = letters.size() + digits.size();
    std::from_chars(digits.data(), digits.data() + digits.size(), pair.value);
    pairs.push_back(pair);
  }
  return pairs;
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words)
    if (!word.empty()) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Nothing where the operation refuses the line.
std::optional<Problem> read(const operations::Operation& operation, const std::string& line) try {
  return operation.read(text::split(line), text::Completeness::whole);
} catch (const text::Refusal&) {
  return std::nullopt;
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace

std::vector<Problem> simpler(const Problem& problem) {
  const operations::Operation& operation = problem.operation();
  const std::string line = to_text(problem);
  const std::vector<std::string_view> views = text::split(line).words, letters = operation.letters();
  std::vector<std::string> words(views.begin(), views.end());
  std::vector<std::int64_t> numbers;
  for (const std::string_view word : views)
    for (const Pair& pair : pairs_of(word, letters)) numbers.push_back(pair.value);
  std::vector<Problem> found;
  const auto add = [&] {
    const std::optional<Problem> read_again = read(operation, joined(words));
    if (read_again && !(*read_again == problem) && std::find(found.begin(), found.end(), *read_again) == found.end())
      found.push_back(*read_again);
  };
  for (std::string& word : words) {
    const std::string whole = word;
    word.clear();
    if (whole != operation.word()) add();
    for (const Pair& pair : pairs_of(whole, letters)) {
      const std::string before = whole.substr(0, pair.at), name = whole.substr(pair.at, pair.letters),
                        behind = whole.substr(pair.at + pair.size);
      word = before + behind;
      add();
      std::vector<std::int64_t> values = {1, pair.value / 2, pair.value - 1};
      values.insert(values.end(), numbers.begin(), numbers.end());
      for (const std::int64_t less : values) {
        word = before + name + std::to_string(less) + behind;
        if (less < pair.value) add();
      }
    }
    word = whole;
  }
  return found;
}

Shrunk shrink(const Problem& problem, const std::function<bool(const Problem&)>& fails, const ShrinkBudget& budget) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Shrunk shrunk{problem};
  const auto is_spent = [&] {
    return shrunk.tried == budget.problems ||
           std::chrono::duration<double>(Clock::now() - begin).count() > budget.seconds;
  };
  for (bool helped = true; helped;) {
    helped = false;
    std::vector<Problem> steps = simpler(shrunk.problem);
    for (std::size_t i = 0; i < steps.size();) {
      if (is_spent()) return shrunk;
      ++shrunk.tried;
      if (!fails(steps[i])) {
        ++i;
        continue;
      }
      // The steps before this one did not help, and hardly would now: the next round tries them again.
      shrunk.problem = steps[i];
      helped = true;
      steps = simpler(shrunk.problem);
    }
  }
  return shrunk;
}

}  // namespace omniconv::checking
