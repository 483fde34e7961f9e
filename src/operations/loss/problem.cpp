#include "operations/loss/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = LossProblem;
constexpr std::array<Field<Task>, 2> loss_fields{{
    {"n", "n", &Task::n, 1},
    {"c", "c", &Task::c, 1},
}};

constexpr std::array<LetterGroup<Task>, 2> loss_letters{{
    {"n", "batch size", 0, true, {&Task::n}},
    {"c", "classes", 0, true, {&Task::c}},
}};

constexpr std::array<ExactWord<Task>, 9> loss_words{{
    {"softmax", "loss", [](Task& t) { t.loss = Loss::softmax; }},
    {"mse", "loss", [](Task& t) { t.loss = Loss::mse; }},
    {"fwd", "pass", [](Task& t) { t.backward = false; }},
    {"bwd", "pass", [](Task& t) { t.backward = true; }},
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
    {"sums", "sums", [](Task& t) { t.sums = true; }},
}};

}  // namespace

std::optional<BrokenRule> first_broken_rule(const LossProblem& problem) {
  if (problem.loss > Loss::mse)
    return BrokenRule{"loss", fmt::format("loss is number {}: must be softmax or mse", static_cast<int>(problem.loss))};
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (problem.sums && !problem.backward)
    return BrokenRule{"sums", "sums is of the backward pass, and the pass is fwd: say bwd, or leave it out"};
  if (auto broken = extent_rule<Task>(problem, loss_fields)) return broken;
  const Extent n{"n", "n", problem.n}, c{"c", "c", problem.c};
  if (auto broken = array_rule("x", {n, c}, size_of(problem.type))) return broken;
  // Labels, and the losses of rows.
  if (auto broken = array_rule("y", {n}, problem.type == DataType::f64 ? 8 : 4)) return broken;
  return name_rule(problem.name);
}

std::string print(const LossProblem& t) {
  return text::join_words({"loss", t.loss == Loss::mse ? "mse" : "", t.backward ? "bwd" : "",
                           t.type == DataType::f32 ? "" : name(t.type), t.sums ? "sums" : "",
                           fmt::format("n{}c{}", t.n, t.c), text::in_quotes(t.name)});
}

bool LossProblem::operator==(const LossProblem& other) const {
  for (const auto& field : loss_fields)
    if (this->*field.member != other.*field.member) return false;
  return loss == other.loss && backward == other.backward && sums == other.sums && type == other.type;
}

const text::Notation<LossProblem>& operations::loss_notation() {
  static constexpr text::Notation<LossProblem> notation{"loss", loss_words, loss_letters};
  return notation;
}

}  // namespace omniconv
