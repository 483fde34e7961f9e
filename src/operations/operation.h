// What an operation is, for all that works with any of them: its problems and their text, its arrays, data and
// references for checks, what it costs by definition, and its solvers.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem_words.h"
#include "omniconv/error.h"
#include "omniconv/plan.h"
#include "omniconv/problem.h"
#include "operations/draws.h"
#include "operations/solver.h"

namespace omniconv::operations {

// Small whole numbers, whose results must be exact, or random ones.
enum class DataKind : std::uint8_t { integers, reals };

// What an element of an output should be.
struct Expected {
  double value = 0;      // in double precision, before it is finished and rounded to the type that is stored
  double magnitude = 0;  // the norm of error bounds: the sum of the magnitudes of its terms
  double condition = 0;  // what is divided by may be off by this many times the bound
  bool exact = false;    // the bits are promised: `bytes`
  std::byte bytes[8] = {};
};

// By definition, whatever an algorithm does.
struct Figures {
  double operations = 0;        // two for a multiply-add
  double least_operations = 0;  // that could give the result
  double longest_sum = 0;       // terms
  double pixels = 0;            // of an image; 0 where the operation has none
  double bytes = 0;             // that a run moves at least; 0: every array once, and twice what is changed
  double reference_units = 0;   // the reference's own error, in units of 2^-52 times the norm
};

// An array as a command's option: "--x", "the input".
struct ArrayHelp {
  std::string name, meaning;
  std::string alias = {};
};

struct ScalarSpec {
  std::string name;
  double value = 0;       // unless a run says another
  double checked = -0.5;  // in checks: not what it is by default; halves and turned signs are exact
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::string_view name() const = 0;  // "conv2d"
  // The word that begins its problems; empty for the operation whose problems begin with none.
  virtual std::string_view word() const { return name(); }

  // Problems, of this operation. `read` throws text::Refusal.
  virtual Problem read(const text::Words& line, text::Completeness completeness) const = 0;
  virtual std::string to_text(const Problem& problem) const = 0;
  virtual void validate(const Problem& problem) const = 0;
  virtual bool are_equal(const Problem& a, const Problem& b) const = 0;
  virtual const std::string& name_of(const Problem& problem) const = 0;
  // The extents that its problems' text may name: "h", "ph", "batch".
  virtual std::vector<std::string_view> letters() const = 0;
  virtual Problem with_letters(const Problem& problem, std::string_view letters, std::int64_t value) const = 0;
  // The words that may say `what` ("pass", "type", "layout"); none where it has no such choice.
  virtual std::vector<std::string_view> words(std::string_view what) const = 0;
  virtual Problem with_word(const Problem& problem, std::string_view what, std::string_view word) const = 0;
  // The extents that a partial text left out, with what they mean: "r (filter rows)"; empty where there are none.
  virtual std::string missing(const Problem& problem) const = 0;
  // The number of these letters; 0 where a partial text did not say it.
  virtual std::int64_t extent(const Problem& problem, std::string_view letters) const = 0;
  // A random one that takes little work, of any words and letters that it has.
  virtual Problem random_problem(Draws& draws) const = 0;

  virtual std::span<const Solver* const> solvers() const = 0;
  // With what the text leaves open, from the seed.
  virtual AnyTask task(const Problem& problem, std::uint64_t seed) const = 0;
  // Of a partial problem too, whose extents that cannot be worked out are 0.
  virtual std::vector<ArraySpec> arrays(const Problem& problem) const = 0;
  // Whether an output may be the memory of an input, from its first byte to its last: each element is read before it is
  // written, by who writes it. By their places among the arrays.
  virtual bool may_be_same(const Problem&, std::size_t /*output*/, std::size_t /*input*/) const { return false; }
  // All arrays that any of its problems has, as a command's options name them.
  virtual std::vector<ArrayHelp> array_help() const = 0;
  virtual std::vector<ScalarSpec> scalars(const AnyTask&) const { return {}; }
  virtual Figures figures(const AnyTask& task) const = 0;
  // What is known of the task beside its problem, in words, for explain; empty where that is nothing.
  virtual std::string describe(const AnyTask&) const { return {}; }

  // Checks. Each kind is a run of its own, on arrays of that kind; random numbers are always among them, and the last.
  virtual std::vector<DataKind> data_kinds(const AnyTask& task) const = 0;
  // Array `array` of the operation's order; what an output held too, where it is added to.
  virtual void fill(const AnyTask& task, std::size_t array, DataKind kind, std::uint64_t seed,
                    std::span<std::byte> data) const = 0;
  // The outputs' elements to look at in a sampled check.
  virtual std::vector<std::int64_t> sample(const AnyTask& task, const ArraySpec& array, std::int64_t samples,
                                           std::uint64_t seed) const;
  // Of elements `points` of the output `array`, from all arrays as they were before the run with these scalars.
  virtual void expect(const AnyTask& task, std::size_t array, std::span<const std::byte* const> data,
                      std::span<const double> scalars, std::span<const std::int64_t> points,
                      std::span<Expected> expected) const = 0;
  // Puts the norm of a bound of blocks (ErrorBound::tile) in the place of the elements' own in what `expect` gave.
  virtual void expect_in_blocks(const AnyTask&, std::size_t, std::span<const std::byte* const>, const BlockExtents&,
                                std::span<const std::int64_t>, std::span<Expected>) const {}
  // The two arrays whose elements its sums are products of; none where no bound has an absolute term.
  virtual std::vector<std::size_t> factors(const AnyTask&) const { return {}; }
  // What is made of a value before it is rounded: a monotone function, such as relu.
  virtual double finished(const AnyTask&, double value) const { return value; }
  // Where an element stands, for messages: "y[3]" unless the operation says more.
  virtual std::string place(const AnyTask& task, const ArraySpec& array, std::int64_t point) const;
};

// Whose required letters may be missing, and are 0 then.
Problem parse_partial_problem(std::string_view line);

// All of them; the one whose problems begin with no word last.
std::span<const Operation* const> operations();

// The shared part of an operation whose problems are T, of a notation; print() and first_broken_rule() are overloads
// for T.
template <typename T>
class OperationOf : public Operation {
 public:
  Problem read(const text::Words& line, text::Completeness completeness) const override {
    text::Places places;
    return text::finish<T>(text::read_words(line, notation(), places), line, notation().letters, places, completeness,
                           [](const T& problem) { return first_broken_rule(problem); });
  }
  std::string to_text(const Problem& problem) const final { return print(of(problem)); }
  void validate(const Problem& problem) const final { require_unbroken(name(), first_broken_rule(of(problem))); }
  bool are_equal(const Problem& a, const Problem& b) const final { return of(a) == of(b); }
  const std::string& name_of(const Problem& problem) const final { return of(problem).name; }
  std::vector<std::string_view> letters() const final {
    std::vector<std::string_view> all;
    for (const auto& group : notation().letters) all.push_back(group.letters);
    return all;
  }
  Problem with_letters(const Problem& problem, std::string_view letters, std::int64_t value) const final {
    T changed = of(problem);
    for (const auto& group : notation().letters)
      if (group.letters == letters)
        for (const auto member : group.members)
          if (member != nullptr) changed.*member = value;
    return changed;
  }
  std::vector<std::string_view> words(std::string_view what) const final {
    std::vector<std::string_view> all;
    for (const auto& word : notation().words)
      if (word.what == what) all.push_back(word.text);
    return all;
  }
  Problem with_word(const Problem& problem, std::string_view what, std::string_view word) const final {
    T changed = of(problem);
    for (const auto& known : notation().words)
      if (known.what == what && known.text == word) known.apply(changed);
    return adapted(std::move(changed));
  }
  std::string missing(const Problem& problem) const final {
    std::string all;
    for (const auto& group : notation().letters)
      if (group.required && of(problem).*group.members[0] == 0)
        all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", group.letters, group.meaning);
    return all;
  }
  std::int64_t extent(const Problem& problem, std::string_view letters) const final {
    for (const auto& group : notation().letters)
      if (group.letters == letters) return of(problem).*group.members[0];
    return 0;
  }
  // What is too much work is drawn again.
  Problem random_problem(Draws& draws) const final {
    for (const double most = draws.work();;) {
      const T drawn = adapted(draw(with_random_words(draws), draws));
      if (first_broken_rule(drawn)) continue;
      const Problem problem(drawn);
      double work = figures(task(problem, 0)).operations / 2;
      for (const ArraySpec& array : arrays(problem)) work += 8 * static_cast<double>(array.elements());
      if (work <= most) return problem;
    }
  }

 protected:
  virtual const text::Notation<T>& notation() const = 0;
  // What else a change of a word changes.
  virtual T adapted(T problem) const { return problem; }
  // The problem with random extents, and what else its words do not say; it may break rules.
  virtual T draw(T problem, Draws& draws) const = 0;
  static const T& of(const Problem& problem) { return *static_cast<const T*>(problem.value()); }

 private:
  // Of words that say the same thing one, and each word that stands alone in one problem of three.
  T with_random_words(Draws& draws) const {
    T problem;
    const auto words = notation().words;
    for (auto first = words.begin(); first != words.end();) {
      const auto last = std::find_if(first, words.end(), [&](const auto& word) { return word.what != first->what; });
      if (last - first > 1 || draws.one_in(3)) first[draws.below(last - first)].apply(problem);
      first = last;
    }
    return problem;
  }
};

}  // namespace omniconv::operations
