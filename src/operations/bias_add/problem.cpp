#include "operations/bias_add/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = BiasAddProblem;
constexpr std::array<Field<Task>, 4> bias_add_fields{{
    {"n", "n", &Task::n, 1},
    {"c", "c", &Task::c, 1},
    {"h", "h", &Task::h, 1},
    {"w", "w", &Task::w, 1},
}};

constexpr std::array<LetterGroup<Task>, 4> bias_add_letters{{
    {"n", "batch size", 0, true, {&Task::n}},
    {"c", "channels", 0, true, {&Task::c}},
    {"h", "rows", 0, true, {&Task::h}},
    {"w", "columns", 0, true, {&Task::w}},
}};

constexpr std::array<ExactWord<Task>, 9> bias_add_words{{
    {"fwd", "pass", [](Task& t) { t.backward = false; }},
    {"bwd", "pass", [](Task& t) { t.backward = true; }},
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
    {"nchw", "layout", [](Task& t) { t.layout = Layout::nchw; }},
    {"nhwc", "layout", [](Task& t) { t.layout = Layout::nhwc; }},
    {"relu", "relu", [](Task& t) { t.relu = true; }},
}};

}  // namespace

std::optional<BrokenRule> first_broken_rule(const BiasAddProblem& problem) {
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (problem.layout > Layout::nhwc)
    return BrokenRule{"layout",
                      fmt::format("layout is number {}: must be nchw or nhwc", static_cast<int>(problem.layout))};
  if (auto broken = extent_rule<Task>(problem, bias_add_fields)) return broken;
  if (auto broken = array_rule(
          "the input", {{"n", "n", problem.n}, {"c", "c", problem.c}, {"h", "h", problem.h}, {"w", "w", problem.w}},
          size_of(problem.type)))
    return broken;
  return name_rule(problem.name);
}

std::string print(const BiasAddProblem& t) {
  return text::join_words({"bias_add", t.backward ? "bwd" : "", t.type == DataType::f32 ? "" : name(t.type),
                           t.layout == Layout::nhwc ? "nhwc" : "", t.relu ? "relu" : "",
                           fmt::format("n{}c{}h{}w{}", t.n, t.c, t.h, t.w), text::in_quotes(t.name)});
}

bool BiasAddProblem::operator==(const BiasAddProblem& other) const {
  for (const auto& field : bias_add_fields)
    if (this->*field.member != other.*field.member) return false;
  return backward == other.backward && relu == other.relu && type == other.type && layout == other.layout;
}

const text::Notation<BiasAddProblem>& operations::bias_add_notation() {
  static constexpr text::Notation<BiasAddProblem> notation{"bias_add", bias_add_words, bias_add_letters};
  return notation;
}

}  // namespace omniconv
