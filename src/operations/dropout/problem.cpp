#include "operations/dropout/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = DropoutProblem;
constexpr std::array<Field<Task>, 1> dropout_fields{{{"n", "n", &Task::n, 1}}};

constexpr std::array<LetterGroup<Task>, 1> dropout_letters{{{"n", "elements", 0, true, {&Task::n}}}};

constexpr std::array<ExactWord<Task>, 4> dropout_words{{
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
}};

}  // namespace

std::optional<BrokenRule> first_broken_rule(const DropoutProblem& problem) {
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (auto broken = extent_rule<Task>(problem, dropout_fields)) return broken;
  if (auto broken = array_rule("the input", {{"n", "n", problem.n}}, size_of(problem.type))) return broken;
  return name_rule(problem.name);
}

std::string print(const DropoutProblem& t) {
  return text::join_words(
      {"dropout", t.type == DataType::f32 ? "" : name(t.type), fmt::format("n{}", t.n), text::in_quotes(t.name)});
}

bool DropoutProblem::operator==(const DropoutProblem& other) const {
  return type == other.type && n == other.n;
}

const text::Notation<DropoutProblem>& operations::dropout_notation() {
  static constexpr text::Notation<DropoutProblem> notation{"dropout", dropout_words, dropout_letters};
  return notation;
}

}  // namespace omniconv
