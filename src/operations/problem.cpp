// Problems of any operation: the functions of omniconv/problem.h.
#include "omniconv/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/checked.h"
#include "operations/operation.h"

namespace omniconv {
namespace {

using operations::Operation;
using operations::operations;

// The operation that the words name.
const Operation& operation_of_words(const text::Words& line) {
  const Operation* found = operations().back();
  bool named = false;
  for (const std::string_view word : line.words)
    for (const Operation* const operation : operations()) {
      if (operation->word().empty() || word != operation->word()) continue;
      if (named) text::refuse(word, fmt::format("expected one operation, and {} was given before", found->word()));
      found = operation;
      named = true;
    }
  return *found;
}

// Nothing where the line holds nothing but space and comment. `where` begins the error.
std::optional<Problem> read_line(std::string_view line, std::string_view where, text::Completeness completeness) {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Operation* const operation : operations())
      if (!operation->word().empty()) all.push_back(operation->word());
    return all;
  }();
  try {
    text::Words words = text::split(line);
    if (words.words.empty() && words.quoted_name.empty()) return std::nullopt;
    words.operations = names;
    return operation_of_words(words).read(words, completeness);
  } catch (const text::Refusal& refusal) {
    // Columns count characters: continuation bytes of UTF-8 add none.
    const auto column = 1 + std::count_if(line.data(), refusal.at,
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    throw bad_input(fmt::format("{}column {}: {}", where, column, refusal.message));
  }
}

Problem read_one(std::string_view line, text::Completeness completeness) {
  if (auto problem = read_line(line, "problem text, ", completeness)) return *std::move(problem);
  throw bad_input("problem text, column 1: found an empty line; expected a problem, as in n1c3h8w8k4r3s3");
}

}  // namespace

std::string_view Problem::operation_name() const {
  return operation_->name();
}
const std::string& Problem::name() const {
  return operation_->name_of(*this);
}
bool Problem::operator==(const Problem& other) const {
  return operation_ == other.operation_ && operation_->are_equal(*this, other);
}

void refuse_other_operation(const Problem& problem, const Operation& wanted) {
  throw bad_input(fmt::format("{} is a problem of {}: expected one of {}", to_text(problem), problem.operation_name(),
                              wanted.name()));
}

void validate(const Problem& problem) {
  problem.operation().validate(problem);
}

std::string to_text(const Problem& problem) {
  return problem.operation().to_text(problem);
}

std::vector<ArraySpec> arrays_of(const Problem& problem) {
  validate(problem);
  return problem.operation().arrays(problem);
}

std::int64_t ArraySpec::elements() const {
  std::int64_t all = 1;
  for (const std::int64_t extent : extents) all = checked_multiply(all, extent, name);
  return all;
}

std::int64_t ArraySpec::bytes() const {
  return checked_multiply(elements(), size_of(type), name);
}

Problem parse_problem(std::string_view line) {
  return read_one(line, text::Completeness::whole);
}

Problem operations::parse_partial_problem(std::string_view line) {
  return read_one(line, text::Completeness::partial);
}

std::vector<Problem> parse_problem_list(std::string_view text, std::string_view source) {
  std::vector<Problem> problems;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto problem = read_line(line, fmt::format("{}:{}: ", source, number), text::Completeness::whole))
      problems.push_back(*std::move(problem));
  }
  return problems;
}

}  // namespace omniconv
