#include "operations/add/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = AddProblem;
constexpr std::array<Field<Task>, 6> add_fields{{
    {"n", "n", &Task::n, 1},
    {"c", "c", &Task::c, 1},
    {"h", "h", &Task::h, 1},
    {"w", "w", &Task::w, 1},
    {"k", "k", &Task::k, 1},
    {"u", "u", &Task::stride, 1},
}};

constexpr std::array<LetterGroup<Task>, 6> add_letters{{
    {"n", "batch size", 0, true, {&Task::n}},
    {"c", "channels of the shortcut", 0, true, {&Task::c}},
    {"h", "rows of the shortcut", 0, true, {&Task::h}},
    {"w", "columns of the shortcut", 0, true, {&Task::w}},
    {"k", "channels of the output", 0, true, {&Task::k}},
    {"u", "stride", 0, false, {&Task::stride}},
}};

constexpr std::array<ExactWord<Task>, 9> add_words{{
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

std::optional<BrokenRule> first_broken_rule(const AddProblem& problem) {
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (problem.layout > Layout::nhwc)
    return BrokenRule{"layout",
                      fmt::format("layout is number {}: must be nchw or nhwc", static_cast<int>(problem.layout))};
  if (problem.backward && problem.relu)
    return BrokenRule{"relu", "relu is of the forward pass, and the pass is bwd: leave it out"};
  if (auto broken = extent_rule<Task>(problem, add_fields)) return broken;
  if (problem.k < problem.c)
    return BrokenRule{"k", fmt::format("k is {}: must be at least c, which is {}", problem.k, problem.c)};
  if (auto broken = array_rule(
          "the shortcut", {{"n", "n", problem.n}, {"c", "c", problem.c}, {"h", "h", problem.h}, {"w", "w", problem.w}},
          size_of(problem.type)))
    return broken;
  if (auto broken = array_rule(
          "the output",
          {{"n", "n", problem.n}, {"k", "k", problem.k}, {"h", "rows P", P(problem)}, {"w", "columns Q", Q(problem)}},
          size_of(problem.type)))
    return broken;
  return name_rule(problem.name);
}

std::string print(const AddProblem& t) {
  return text::join_words({"add", t.backward ? "bwd" : "", t.type == DataType::f32 ? "" : name(t.type),
                           t.layout == Layout::nhwc ? "nhwc" : "", t.relu ? "relu" : "",
                           fmt::format("n{}c{}h{}w{}k{}{}", t.n, t.c, t.h, t.w, t.k, text::unless(t.stride, 1, "u")),
                           text::in_quotes(t.name)});
}

bool AddProblem::operator==(const AddProblem& other) const {
  for (const auto& field : add_fields)
    if (this->*field.member != other.*field.member) return false;
  return backward == other.backward && type == other.type && layout == other.layout && relu == other.relu;
}

const text::Notation<AddProblem>& operations::add_notation() {
  static constexpr text::Notation<AddProblem> notation{"add", add_words, add_letters};
  return notation;
}

}  // namespace omniconv
