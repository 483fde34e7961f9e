#include "operations/batch/problem.h"

#include <algorithm>
#include <array>

#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Task = BatchProblem;
constexpr std::array<Field<Task>, 6> batch_fields{{
    {"m", "m", &Task::m, 1},
    {"n", "n", &Task::n, 1},
    {"c", "c", &Task::c, 1},
    {"h", "h", &Task::h, 1},
    {"w", "w", &Task::w, 1},
    {"s", "s", &Task::shift, 0},
}};

constexpr std::array<LetterGroup<Task>, 6> batch_letters{{
    {"m", "images of the set", 0, true, {&Task::m}},
    {"n", "batch size", 0, true, {&Task::n}},
    {"c", "channels", 0, true, {&Task::c}},
    {"h", "rows", 0, true, {&Task::h}},
    {"w", "columns", 0, true, {&Task::w}},
    {"s", "shift", 0, false, {&Task::shift}},
}};

constexpr std::array<ExactWord<Task>, 8> batch_words{{
    {"f32", "type", [](Task& t) { t.type = DataType::f32; }},
    {"f64", "type", [](Task& t) { t.type = DataType::f64; }},
    {"f16", "type", [](Task& t) { t.type = DataType::f16; }},
    {"bf16", "type", [](Task& t) { t.type = DataType::bf16; }},
    {"nchw", "layout", [](Task& t) { t.layout = Layout::nchw; }},
    {"nhwc", "layout", [](Task& t) { t.layout = Layout::nhwc; }},
    {"gathered", "gathered", [](Task& t) { t.gathered = true; }},
    {"flip", "flip", [](Task& t) { t.flip = true; }},
}};

// Draws are products of 32 bits and 2 * shift + 1, which have 64.
constexpr std::int64_t most_shift = std::int64_t{1} << 30;

std::optional<BrokenRule> shift_rule(const Task& problem) {
  const std::int64_t limit = std::min({problem.h, problem.w, most_shift});
  if (problem.shift < limit) return std::nullopt;
  return BrokenRule{
      "s", fmt::format("s is {}: must be less than {}, so that something of each image is left", problem.shift, limit)};
}

}  // namespace

std::optional<BrokenRule> first_broken_rule(const BatchProblem& problem) {
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (problem.layout > Layout::nhwc)
    return BrokenRule{"layout",
                      fmt::format("layout is number {}: must be nchw or nhwc", static_cast<int>(problem.layout))};
  if (auto broken = extent_rule<Task>(problem, batch_fields)) return broken;
  if (problem.m > Task::most_images)
    return BrokenRule{"m", fmt::format("m is {}: must be at most {}, up to which every position is a number of f32",
                                       problem.m, Task::most_images)};
  if (auto broken = shift_rule(problem)) return broken;
  const Extent c{"c", "c", problem.c}, h{"h", "h", problem.h}, w{"w", "w", problem.w};
  if (auto broken = array_rule("the images", {{"m", "m", problem.m}, c, h, w}, 1)) return broken;
  // The classes have four bytes each.
  if (auto broken =
          array_rule("the output", {{"n", "n", problem.n}, c, h, w}, std::max<std::int64_t>(size_of(problem.type), 4)))
    return broken;
  if (auto broken = array_rule("the table", {c}, 256 * 4)) return broken;
  return name_rule(problem.name);
}

std::string print(const BatchProblem& t) {
  return text::join_words(
      {"batch", t.type == DataType::f32 ? "" : name(t.type), t.layout == Layout::nhwc ? "nhwc" : "",
       t.gathered ? "gathered" : "", t.flip ? "flip" : "",
       fmt::format("m{}n{}c{}h{}w{}{}", t.m, t.n, t.c, t.h, t.w, t.shift == 0 ? "" : fmt::format("s{}", t.shift)),
       text::in_quotes(t.name)});
}

bool BatchProblem::operator==(const BatchProblem& other) const {
  for (const auto& field : batch_fields)
    if (this->*field.member != other.*field.member) return false;
  return type == other.type && layout == other.layout && gathered == other.gathered && flip == other.flip;
}

const text::Notation<BatchProblem>& operations::batch_notation() {
  static constexpr text::Notation<BatchProblem> notation{"batch", batch_words, batch_letters};
  return notation;
}

}  // namespace omniconv
