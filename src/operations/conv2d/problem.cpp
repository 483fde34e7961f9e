#include "operations/conv2d/problem.h"

#include <array>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

constexpr std::array<Field<Conv2dProblem>, 16> conv2d_fields{{
    {"n", "n", &Conv2dProblem::n, 1},
    {"c", "c", &Conv2dProblem::c, 1},
    {"h", "h", &Conv2dProblem::h, 1},
    {"w", "w", &Conv2dProblem::w, 1},
    {"k", "k", &Conv2dProblem::k, 1},
    {"r", "r", &Conv2dProblem::r, 1},
    {"s", "s", &Conv2dProblem::s, 1},
    {"pt", "pad_top", &Conv2dProblem::pad_top, 0},
    {"pb", "pad_bottom", &Conv2dProblem::pad_bottom, 0},
    {"pl", "pad_left", &Conv2dProblem::pad_left, 0},
    {"pr", "pad_right", &Conv2dProblem::pad_right, 0},
    {"uh", "stride_h", &Conv2dProblem::stride_h, 1},
    {"uw", "stride_w", &Conv2dProblem::stride_w, 1},
    {"dh", "dilation_h", &Conv2dProblem::dilation_h, 1},
    {"dw", "dilation_w", &Conv2dProblem::dilation_w, 1},
    {"g", "groups", &Conv2dProblem::groups, 1},
}};
using C = Conv2dProblem;
constexpr std::array<LetterGroup<C>, 21> conv2d_letters{{
    {"n", "batch size", 0, true, {&C::n}},
    {"c", "input channels", 0, true, {&C::c}},
    {"h", "rows", 0, true, {&C::h}},
    {"w", "columns", 0, true, {&C::w}},
    {"k", "output channels", 0, true, {&C::k}},
    {"r", "filter rows", 0, true, {&C::r}},
    {"s", "filter columns", 0, true, {&C::s}},
    {"p", "padding", 0, false, {&C::pad_top, &C::pad_bottom, &C::pad_left, &C::pad_right}},
    {"ph", "padding", 1, false, {&C::pad_top, &C::pad_bottom}},
    {"pw", "padding", 1, false, {&C::pad_left, &C::pad_right}},
    {"pt", "padding", 2, false, {&C::pad_top}},
    {"pb", "padding", 2, false, {&C::pad_bottom}},
    {"pl", "padding", 2, false, {&C::pad_left}},
    {"pr", "padding", 2, false, {&C::pad_right}},
    {"u", "stride", 0, false, {&C::stride_h, &C::stride_w}},
    {"uh", "stride", 1, false, {&C::stride_h}},
    {"uw", "stride", 1, false, {&C::stride_w}},
    {"d", "dilation", 0, false, {&C::dilation_h, &C::dilation_w}},
    {"dh", "dilation", 1, false, {&C::dilation_h}},
    {"dw", "dilation", 1, false, {&C::dilation_w}},
    {"g", "groups", 0, false, {&C::groups}},
}};

constexpr std::array<ExactWord<C>, 14> conv2d_words{{
    {"fwd", "pass", [](C& p) { p.pass = Pass::forward; }},
    {"bwd_data", "pass", [](C& p) { p.pass = Pass::backward_data; }},
    {"bwd_filter", "pass", [](C& p) { p.pass = Pass::backward_filter; }},
    {"f32", "type", [](C& p) { p.type = DataType::f32; }},
    {"f64", "type", [](C& p) { p.type = DataType::f64; }},
    {"f16", "type", [](C& p) { p.type = DataType::f16; }},
    {"bf16", "type", [](C& p) { p.type = DataType::bf16; }},
    {"tf32", "type", [](C& p) { p.type = DataType::tf32; }},
    {"nchw", "layout", [](C& p) { p.layout = Layout::nchw; }},
    {"nhwc", "layout", [](C& p) { p.layout = Layout::nhwc; }},
    {"flip", "flip", [](C& p) { p.flip = true; }},
    {"bias", "bias", [](C& p) { p.bias = true; }},
    {"relu", "relu", [](C& p) { p.relu = true; }},
    {"acc", "acc", [](C& p) { p.accumulate = true; }},
}};
std::int64_t rows(const Conv2dProblem& p) {
  return output_extent(
      {"h with its padding", "r with its dilation", p.h, p.pad_top, p.pad_bottom, p.r, p.dilation_h, p.stride_h});
}
std::int64_t columns(const Conv2dProblem& p) {
  return output_extent(
      {"w with its padding", "s with its dilation", p.w, p.pad_left, p.pad_right, p.s, p.dilation_w, p.stride_w});
}

struct Outputs {
  std::int64_t rows = 0, columns = 0;
};

std::optional<BrokenRule> outputs_rule(const Conv2dProblem& problem, Outputs& outputs) {
  std::string_view letters = "h";
  try {
    outputs.rows = rows(problem);
    letters = "w";
    outputs.columns = columns(problem);
  } catch (const Error& error) {
    return BrokenRule{letters, error.what()};
  }
  if (outputs.rows < 1)
    return BrokenRule{"h",
                      fmt::format("output rows P = floor((h {} + pad_top {} + pad_bottom {} - dilation_h {}*(r {} - "
                                  "1) - 1) / stride_h {}) + 1 is {}: must be at least 1",
                                  problem.h, problem.pad_top, problem.pad_bottom, problem.dilation_h, problem.r,
                                  problem.stride_h, outputs.rows)};
  if (outputs.columns < 1)
    return BrokenRule{"w",
                      fmt::format("output columns Q = floor((w {} + pad_left {} + pad_right {} - dilation_w {}*(s {} "
                                  "- 1) - 1) / stride_w {}) + 1 is {}: must be at least 1",
                                  problem.w, problem.pad_left, problem.pad_right, problem.dilation_w, problem.s,
                                  problem.stride_w, outputs.columns)};
  return std::nullopt;
}

std::string_view printed(Pass pass) {
  if (pass == Pass::forward) return "";
  return pass == Pass::backward_data ? "bwd_data" : "bwd_filter";
}

void refuse_bad_extents(const Conv2dProblem& problem) {
  require_unbroken("conv2d", extent_rule<Conv2dProblem>(problem, conv2d_fields));
}

}  // namespace

std::optional<BrokenRule> first_broken_rule(const Conv2dProblem& problem) {
  if (problem.pass > Pass::backward_filter)
    return BrokenRule{"pass", fmt::format("pass is number {}: must be forward, backward_data or backward_filter",
                                          static_cast<int>(problem.pass))};
  if (auto broken = network_type_rule(problem.type)) return broken;
  if (problem.layout > Layout::nhwc)
    return BrokenRule{"layout",
                      fmt::format("layout is number {}: must be nchw or nhwc", static_cast<int>(problem.layout))};
  if (auto broken = extent_rule<Conv2dProblem>(problem, conv2d_fields)) return broken;
  if (problem.c % problem.groups != 0)
    return BrokenRule{"g", fmt::format("groups is {}: must divide c, which is {}", problem.groups, problem.c)};
  if (problem.k % problem.groups != 0)
    return BrokenRule{"g", fmt::format("groups is {}: must divide k, which is {}", problem.groups, problem.k)};
  Outputs outputs;
  if (auto broken = outputs_rule(problem, outputs)) return broken;
  const Extent n{"n", "n", problem.n}, k{"k", "k", problem.k};
  const std::int64_t bytes = size_of(problem.type);
  if (auto broken =
          array_rule("the input", {n, {"c", "c", problem.c}, {"h", "h", problem.h}, {"w", "w", problem.w}}, bytes))
    return broken;
  if (auto broken = array_rule(
          "the filter",
          {k, {"c", "c/groups", problem.c / problem.groups}, {"r", "r", problem.r}, {"s", "s", problem.s}}, bytes))
    return broken;
  if (auto broken = array_rule("the output", {n, k, {"h", "P", outputs.rows}, {"w", "Q", outputs.columns}}, bytes))
    return broken;
  return name_rule(problem.name);
}

std::string print(const Conv2dProblem& p) {
  const std::string geometry = fmt::format(
      "n{}c{}h{}w{}k{}r{}s{}{}{}{}{}", p.n, p.c, p.h, p.w, p.k, p.r, p.s,
      text::padding({p.pad_top, p.pad_bottom, p.pad_left, p.pad_right}), text::two_axes('u', p.stride_h, p.stride_w, 1),
      text::two_axes('d', p.dilation_h, p.dilation_w, 1), text::unless(p.groups, 1, "g"));
  return text::join_words({printed(p.pass), p.type == DataType::f32 ? "" : name(p.type),
                           p.layout == Layout::nhwc ? "nhwc" : "", p.flip ? "flip" : "", p.bias ? "bias" : "",
                           p.relu ? "relu" : "", p.accumulate ? "acc" : "", geometry, text::in_quotes(p.name)});
}

std::int64_t P(const Conv2dProblem& problem) {
  refuse_bad_extents(problem);
  return rows(problem);
}
std::int64_t Q(const Conv2dProblem& problem) {
  refuse_bad_extents(problem);
  return columns(problem);
}

bool Conv2dProblem::operator==(const Conv2dProblem& other) const {
  for (const auto& field : conv2d_fields)
    if (this->*field.member != other.*field.member) return false;
  return pass == other.pass && type == other.type && layout == other.layout && flip == other.flip &&
         bias == other.bias && relu == other.relu && accumulate == other.accumulate;
}

const text::Notation<Conv2dProblem>& operations::conv2d_notation() {
  static constexpr text::Notation<Conv2dProblem> notation{"", conv2d_words, conv2d_letters};
  return notation;
}

}  // namespace omniconv
