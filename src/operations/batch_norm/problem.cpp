#include "operations/batch_norm/problem.h"

#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = BatchNormProblem;
using Pass = BatchNormProblem::Pass;
constexpr std::array<Field<Task>, 4> batch_norm_fields{{
    {"n", "n", &Task::n, 1},
    {"c", "c", &Task::c, 1},
    {"h", "h", &Task::h, 1},
    {"w", "w", &Task::w, 1},
}};

constexpr std::array<LetterGroup<Task>, 4> batch_norm_letters{{
    {"n", "batch size", 0, true, {&Task::n}},
    {"c", "channels", 0, true, {&Task::c}},
    {"h", "rows", 0, true, {&Task::h}},
    {"w", "columns", 0, true, {&Task::w}},
}};

constexpr std::array<ExactWord<Task>, 10> batch_norm_words{{
    {"fwd", "pass", [](Task& t) { t.pass = Pass::forward; }},
    {"inference", "pass", [](Task& t) { t.pass = Pass::inference; }},
    {"bwd", "pass", [](Task& t) { t.pass = Pass::backward; }},
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
    {"nchw", "layout", [](Task& t) { t.layout = Layout::nchw; }},
    {"nhwc", "layout", [](Task& t) { t.layout = Layout::nhwc; }},
    {"relu", "relu", [](Task& t) { t.relu = true; }},
}};

std::string_view printed(Pass pass) {
  return pass == Pass::forward ? "" : pass == Pass::inference ? "inference" : "bwd";
}

}  // namespace

std::optional<BrokenRule> first_broken_rule(const BatchNormProblem& problem) {
  if (problem.pass > Pass::backward)
    return BrokenRule{"pass", fmt::format("pass is number {}: must be forward, inference or backward",
                                          static_cast<int>(problem.pass))};
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (problem.layout > Layout::nhwc)
    return BrokenRule{"layout",
                      fmt::format("layout is number {}: must be nchw or nhwc", static_cast<int>(problem.layout))};
  if (auto broken = extent_rule<Task>(problem, batch_norm_fields)) return broken;
  if (auto broken = array_rule(
          "the input", {{"n", "n", problem.n}, {"c", "c", problem.c}, {"h", "h", problem.h}, {"w", "w", problem.w}},
          size_of(problem.type)))
    return broken;
  if (problem.pass != Pass::inference && problem.n == 1 && problem.h == 1 && problem.w == 1)
    return BrokenRule{"n",
                      "n * h * w is 1: must be at least 2, since one element has no variance; inference takes one"};
  // The channels' numbers are f32 where x has 16 bits.
  if (auto broken = array_rule("gamma", {{"c", "c", problem.c}}, problem.type == DataType::f64 ? 8 : 4)) return broken;
  return name_rule(problem.name);
}

std::string print(const BatchNormProblem& t) {
  return text::join_words({"batch_norm", printed(t.pass), t.type == DataType::f32 ? "" : name(t.type),
                           t.layout == Layout::nhwc ? "nhwc" : "", t.relu ? "relu" : "",
                           fmt::format("n{}c{}h{}w{}", t.n, t.c, t.h, t.w), text::in_quotes(t.name)});
}

bool BatchNormProblem::operator==(const BatchNormProblem& other) const {
  for (const auto& field : batch_norm_fields)
    if (this->*field.member != other.*field.member) return false;
  return pass == other.pass && relu == other.relu && type == other.type && layout == other.layout;
}

const text::Notation<BatchNormProblem>& operations::batch_norm_notation() {
  static constexpr text::Notation<BatchNormProblem> notation{"batch_norm", batch_norm_words, batch_norm_letters};
  return notation;
}

}  // namespace omniconv
