#include "operations/update/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = UpdateProblem;
using Rule = UpdateProblem::Rule;
constexpr std::array<Field<Task>, 1> update_fields{{{"n", "n", &Task::n, 1}}};

constexpr std::array<LetterGroup<Task>, 1> update_letters{{{"n", "elements", 0, true, {&Task::n}}}};

constexpr std::array<ExactWord<Task>, 9> update_words{{
    {"sgd", "rule", [](Task& t) { t.rule = Rule::sgd; }},
    {"nesterov", "rule", [](Task& t) { t.rule = Rule::nesterov; }},
    {"adam", "rule", [](Task& t) { t.rule = Rule::adam; }},
    {"scaled", "scaled", [](Task& t) { t.scaled = true; }},
    {"guarded", "guarded", [](Task& t) { t.guarded = true; }},
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
}};

std::string_view printed(Rule rule) {
  return rule == Rule::sgd ? "" : rule == Rule::nesterov ? "nesterov" : "adam";
}

}  // namespace

std::optional<BrokenRule> first_broken_rule(const UpdateProblem& problem) {
  if (problem.rule > Rule::adam)
    return BrokenRule{"rule",
                      fmt::format("rule is number {}: must be sgd, nesterov or adam", static_cast<int>(problem.rule))};
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (auto broken = extent_rule<Task>(problem, update_fields)) return broken;
  // The parameters are f32 where the gradient has 16 bits.
  if (auto broken = array_rule("the parameters", {{"n", "n", problem.n}}, problem.type == DataType::f64 ? 8 : 4))
    return broken;
  return name_rule(problem.name);
}

std::string print(const UpdateProblem& t) {
  return text::join_words({"update", printed(t.rule), t.scaled ? "scaled" : "", t.guarded ? "guarded" : "",
                           t.type == DataType::f32 ? "" : name(t.type), fmt::format("n{}", t.n),
                           text::in_quotes(t.name)});
}

bool UpdateProblem::operator==(const UpdateProblem& other) const {
  return rule == other.rule && scaled == other.scaled && guarded == other.guarded && type == other.type && n == other.n;
}

const text::Notation<UpdateProblem>& operations::update_notation() {
  static constexpr text::Notation<UpdateProblem> notation{"update", update_words, update_letters};
  return notation;
}

}  // namespace omniconv
