#include "operations/norm/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = NormProblem;
constexpr std::array<Field<Task>, 1> norm_fields{{{"n", "n", &Task::n, 1}}};

constexpr std::array<LetterGroup<Task>, 1> norm_letters{{{"n", "elements", 0, true, {&Task::n}}}};

constexpr std::array<ExactWord<Task>, 5> norm_words{{
    {"acc", "acc", [](Task& t) { t.accumulate = true; }},
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
}};

}  // namespace

std::optional<BrokenRule> first_broken_rule(const NormProblem& problem) {
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (auto broken = extent_rule<Task>(problem, norm_fields)) return broken;
  if (auto broken = array_rule("the gradient", {{"n", "n", problem.n}}, size_of(problem.type))) return broken;
  return name_rule(problem.name);
}

std::string print(const NormProblem& t) {
  return text::join_words({"norm", t.accumulate ? "acc" : "", t.type == DataType::f32 ? "" : name(t.type),
                           fmt::format("n{}", t.n), text::in_quotes(t.name)});
}

bool NormProblem::operator==(const NormProblem& other) const {
  return accumulate == other.accumulate && type == other.type && n == other.n;
}

const text::Notation<NormProblem>& operations::norm_notation() {
  static constexpr text::Notation<NormProblem> notation{"norm", norm_words, norm_letters};
  return notation;
}

}  // namespace omniconv
