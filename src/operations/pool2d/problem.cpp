#include "operations/pool2d/problem.h"

#include <array>
#include <limits>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::ExactWord;
using text::LetterGroup;

using Pool = Pool2dProblem;
constexpr std::array<Field<Pool>, 12> pool2d_fields{{
    {"n", "n", &Pool::n, 1},
    {"c", "c", &Pool::c, 1},
    {"h", "h", &Pool::h, 1},
    {"w", "w", &Pool::w, 1},
    {"r", "r", &Pool::r, 1},
    {"s", "s", &Pool::s, 1},
    {"pt", "pad_top", &Pool::pad_top, 0},
    {"pb", "pad_bottom", &Pool::pad_bottom, 0},
    {"pl", "pad_left", &Pool::pad_left, 0},
    {"pr", "pad_right", &Pool::pad_right, 0},
    {"uh", "stride_h", &Pool::stride_h, 1},
    {"uw", "stride_w", &Pool::stride_w, 1},
}};

constexpr std::array<LetterGroup<Pool>, 16> pool2d_letters{{
    {"n", "batch size", 0, true, {&Pool::n}},
    {"c", "channels", 0, true, {&Pool::c}},
    {"h", "rows", 0, true, {&Pool::h}},
    {"w", "columns", 0, true, {&Pool::w}},
    {"r", "window rows", 0, true, {&Pool::r}},
    {"s", "window columns", 0, true, {&Pool::s}},
    {"p", "padding", 0, false, {&Pool::pad_top, &Pool::pad_bottom, &Pool::pad_left, &Pool::pad_right}},
    {"ph", "padding", 1, false, {&Pool::pad_top, &Pool::pad_bottom}},
    {"pw", "padding", 1, false, {&Pool::pad_left, &Pool::pad_right}},
    {"pt", "padding", 2, false, {&Pool::pad_top}},
    {"pb", "padding", 2, false, {&Pool::pad_bottom}},
    {"pl", "padding", 2, false, {&Pool::pad_left}},
    {"pr", "padding", 2, false, {&Pool::pad_right}},
    {"u", "stride", 0, false, {&Pool::stride_h, &Pool::stride_w}},
    {"uh", "stride", 1, false, {&Pool::stride_h}},
    {"uw", "stride", 1, false, {&Pool::stride_w}},
}};

constexpr std::array<ExactWord<Pool>, 11> pool2d_words{{
    {"max", "pooling", [](Pool& p) { p.pooling = Pooling::maximum; }},
    {"avg", "pooling", [](Pool& p) { p.pooling = Pooling::average; }},
    {"avg_inside", "pooling", [](Pool& p) { p.pooling = Pooling::average_inside; }},
    {"fwd", "pass", [](Pool& p) { p.backward = false; }},
    {"bwd", "pass", [](Pool& p) { p.backward = true; }},
    {"f32", "type", [](Pool& p) { p.type = DataType::f32; }},
    {"f64", "type", [](Pool& p) { p.type = DataType::f64; }},
    {"f16", "type", [](Pool& p) { p.type = DataType::f16; }},
    {"bf16", "type", [](Pool& p) { p.type = DataType::bf16; }},
    {"nchw", "layout", [](Pool& p) { p.layout = Layout::nchw; }},
    {"nhwc", "layout", [](Pool& p) { p.layout = Layout::nhwc; }},
}};

// One axis of the image and the window on it.
struct Axis {
  std::string_view extent, window, before_letters, after_letters, before_name, after_name, padded, output;
  std::int64_t Pool::*length, Pool::*taps, Pool::*before, Pool::*after, Pool::*stride;
};
constexpr Axis row_axis{
    "h",      "r",      "pt",     "pb",           "pad_top",         "pad_bottom",   "h with its padding",
    "rows P", &Pool::h, &Pool::r, &Pool::pad_top, &Pool::pad_bottom, &Pool::stride_h};
constexpr Axis column_axis{"w",
                           "s",
                           "pl",
                           "pr",
                           "pad_left",
                           "pad_right",
                           "w with its padding",
                           "columns Q",
                           &Pool::w,
                           &Pool::s,
                           &Pool::pad_left,
                           &Pool::pad_right,
                           &Pool::stride_w};

std::int64_t outputs(const Pool& problem, const Axis& axis) {
  return output_extent({axis.padded, axis.window, problem.*axis.length, problem.*axis.before, problem.*axis.after,
                        problem.*axis.taps, 1, problem.*axis.stride});
}

// A window that lies in padding alone has no maximum and no average of its own.
std::optional<BrokenRule> padding_rule(const Pool& problem, const Axis& axis) {
  const auto broken = [&](std::string_view letters, std::string_view name, std::int64_t padding) {
    return BrokenRule{letters, fmt::format("{} is {}: must be smaller than the window's {}, which is {}", name, padding,
                                           axis.window, problem.*axis.taps)};
  };
  if (problem.*axis.before >= problem.*axis.taps)
    return broken(axis.before_letters, axis.before_name, problem.*axis.before);
  if (problem.*axis.after >= problem.*axis.taps)
    return broken(axis.after_letters, axis.after_name, problem.*axis.after);
  return std::nullopt;
}

std::optional<BrokenRule> window_rule(const Pool& problem, const Axis& axis, std::int64_t& outputs_there) {
  try {
    outputs_there = outputs(problem, axis);
  } catch (const Error& error) {
    return BrokenRule{axis.extent, error.what()};
  }
  if (outputs_there >= 1) return std::nullopt;
  return BrokenRule{
      axis.window,
      fmt::format("the window's {} is {}: must be at most {} {} + {} {} + {} {} = {}", axis.window, problem.*axis.taps,
                  axis.extent, problem.*axis.length, axis.before_name, problem.*axis.before, axis.after_name,
                  problem.*axis.after, problem.*axis.length + problem.*axis.before + problem.*axis.after)};
}

// Indices are s32.
std::optional<BrokenRule> index_rule(const Pool& problem) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (problem.r <= most / problem.s) return std::nullopt;
  return BrokenRule{problem.r >= problem.s ? "r" : "s",
                    fmt::format("the window holds r {} * s {} elements: must be at most {}, since indices are s32",
                                problem.r, problem.s, most)};
}

std::string_view printed(Pooling pooling) {
  return pooling == Pooling::maximum ? "" : pooling == Pooling::average ? "avg" : "avg_inside";
}

std::int64_t checked_outputs(const Pool& problem, const Axis& axis) {
  require_unbroken("pool2d", extent_rule<Pool>(problem, pool2d_fields));
  return outputs(problem, axis);
}

}  // namespace

std::optional<BrokenRule> first_broken_rule(const Pool2dProblem& problem) {
  if (problem.pooling > Pooling::average_inside)
    return BrokenRule{"pooling", fmt::format("pooling is number {}: must be maximum, average or average_inside",
                                             static_cast<int>(problem.pooling))};
  if (auto broken = type_rule("type", problem.type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}))
    return broken;
  if (problem.layout > Layout::nhwc)
    return BrokenRule{"layout",
                      fmt::format("layout is number {}: must be nchw or nhwc", static_cast<int>(problem.layout))};
  if (auto broken = extent_rule<Pool>(problem, pool2d_fields)) return broken;
  for (const Axis& axis : {row_axis, column_axis})
    if (auto broken = padding_rule(problem, axis)) return broken;
  std::int64_t rows = 0, columns = 0;
  if (auto broken = window_rule(problem, row_axis, rows)) return broken;
  if (auto broken = window_rule(problem, column_axis, columns)) return broken;
  if (auto broken = index_rule(problem)) return broken;
  const Extent n{"n", "n", problem.n}, c{"c", "c", problem.c};
  if (auto broken =
          array_rule("the input", {n, c, {"h", "h", problem.h}, {"w", "w", problem.w}}, size_of(problem.type)))
    return broken;
  if (auto broken = array_rule("the output", {n, c, {"h", "P", rows}, {"w", "Q", columns}},
                               std::max(size_of(problem.type), size_of(DataType::s32))))
    return broken;
  return name_rule(problem.name);
}

std::string print(const Pool2dProblem& p) {
  const std::string geometry = fmt::format("n{}c{}h{}w{}r{}s{}{}{}", p.n, p.c, p.h, p.w, p.r, p.s,
                                           text::padding({p.pad_top, p.pad_bottom, p.pad_left, p.pad_right}),
                                           text::two_axes('u', p.stride_h, p.stride_w, 1));
  return text::join_words({"pool2d", printed(p.pooling), p.backward ? "bwd" : "",
                           p.type == DataType::f32 ? "" : name(p.type), p.layout == Layout::nhwc ? "nhwc" : "",
                           geometry, text::in_quotes(p.name)});
}

std::int64_t P(const Pool2dProblem& problem) {
  return checked_outputs(problem, row_axis);
}
std::int64_t Q(const Pool2dProblem& problem) {
  return checked_outputs(problem, column_axis);
}

bool Pool2dProblem::operator==(const Pool2dProblem& other) const {
  for (const auto& field : pool2d_fields)
    if (this->*field.member != other.*field.member) return false;
  return pooling == other.pooling && backward == other.backward && type == other.type && layout == other.layout;
}

const text::Notation<Pool2dProblem>& operations::pool2d_notation() {
  static constexpr text::Notation<Pool2dProblem> notation{"pool2d", pool2d_words, pool2d_letters};
  return notation;
}

}  // namespace omniconv
