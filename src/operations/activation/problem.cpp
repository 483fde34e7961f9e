#include "operations/activation/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = ActivationProblem;
constexpr std::array<Field<Task>, 4> activation_fields{{
    {"n", "n", &Task::n, 1},
    {"c", "c", &Task::c, 1},
    {"h", "h", &Task::h, 1},
    {"w", "w", &Task::w, 1},
}};

constexpr std::array<LetterGroup<Task>, 4> activation_letters{{
    {"n", "batch size", 0, true, {&Task::n}},
    {"c", "channels", 0, true, {&Task::c}},
    {"h", "rows", 0, true, {&Task::h}},
    {"w", "columns", 0, true, {&Task::w}},
}};

constexpr std::array<ExactWord<Task>, 11> activation_words{{
    {"relu", "function", [](Task& t) { t.function = Activation::relu; }},
    {"sigmoid", "function", [](Task& t) { t.function = Activation::sigmoid; }},
    {"tanh", "function", [](Task& t) { t.function = Activation::tanh; }},
    {"fwd", "pass", [](Task& t) { t.backward = false; }},
    {"bwd", "pass", [](Task& t) { t.backward = true; }},
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
    {"nchw", "layout", [](Task& t) { t.layout = Layout::nchw; }},
    {"nhwc", "layout", [](Task& t) { t.layout = Layout::nhwc; }},
}};

std::string_view printed(Activation function) {
  return function == Activation::relu ? "" : function == Activation::sigmoid ? "sigmoid" : "tanh";
}

}  // namespace

std::optional<BrokenRule> first_broken_rule(const ActivationProblem& problem) {
  if (problem.function > Activation::tanh)
    return BrokenRule{"function", fmt::format("function is number {}: must be relu, sigmoid or tanh",
                                              static_cast<int>(problem.function))};
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (problem.layout > Layout::nhwc)
    return BrokenRule{"layout",
                      fmt::format("layout is number {}: must be nchw or nhwc", static_cast<int>(problem.layout))};
  if (auto broken = extent_rule<Task>(problem, activation_fields)) return broken;
  if (auto broken = array_rule(
          "the input", {{"n", "n", problem.n}, {"c", "c", problem.c}, {"h", "h", problem.h}, {"w", "w", problem.w}},
          size_of(problem.type)))
    return broken;
  return name_rule(problem.name);
}

std::string print(const ActivationProblem& t) {
  return text::join_words({"activation", printed(t.function), t.backward ? "bwd" : "",
                           t.type == DataType::f32 ? "" : name(t.type), t.layout == Layout::nhwc ? "nhwc" : "",
                           fmt::format("n{}c{}h{}w{}", t.n, t.c, t.h, t.w), text::in_quotes(t.name)});
}

bool ActivationProblem::operator==(const ActivationProblem& other) const {
  for (const auto& field : activation_fields)
    if (this->*field.member != other.*field.member) return false;
  return function == other.function && backward == other.backward && type == other.type && layout == other.layout;
}

const text::Notation<ActivationProblem>& operations::activation_notation() {
  static constexpr text::Notation<ActivationProblem> notation{"activation", activation_words, activation_letters};
  return notation;
}

}  // namespace omniconv
