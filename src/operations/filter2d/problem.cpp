#include "operations/filter2d/problem.h"

#include <array>
#include <charconv>
#include <cmath>

#include "core/checked.h"
#include "omniconv/error.h"

namespace omniconv {
namespace {

using text::leading;
using text::LetterGroup;
using text::refuse;

constexpr std::array<Field<Filter2dProblem>, 5> filter2d_fields{{
    {"h", "h", &Filter2dProblem::h, 1},
    {"w", "w", &Filter2dProblem::w, 1},
    {"c", "c", &Filter2dProblem::c, 1},
    {"r", "r", &Filter2dProblem::r, 1},
    {"s", "s", &Filter2dProblem::s, 1},
}};
using F = Filter2dProblem;
constexpr std::array<LetterGroup<F>, 5> filter2d_letters{{
    {"h", "rows", 0, true, {&F::h}},
    {"w", "columns", 0, true, {&F::w}},
    {"c", "channels", 0, false, {&F::c}},
    {"r", "kernel rows", 0, true, {&F::r}},
    {"s", "kernel columns", 0, true, {&F::s}},
}};

std::int64_t rows(const Filter2dProblem& p) {
  return p.border.mode == BorderMode::valid ? p.h - (p.r - 1) : p.h;
}
std::int64_t columns(const Filter2dProblem& p) {
  return p.border.mode == BorderMode::valid ? p.w - (p.s - 1) : p.w;
}

// name[:argument[,argument]...]. Which names there are beside the four words, the image part knows.
std::optional<BrokenRule> kernel_rule(const std::string& kernel) {
  const auto refused = [&](std::string_view rule) {
    return BrokenRule{"kernel", fmt::format("kernel is {}: {}", shown(kernel), rule)};
  };
  if (kernel.size() > longest_name) return refused(fmt::format("must be at most {} bytes", longest_name));
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t colon = kernel.find(':');
  const std::string_view head = std::string_view(kernel).substr(0, colon);
  if (head.empty() || !lower(head.front()) ||
      !std::all_of(head.begin(), head.end(), [&](char c) { return lower(c) || digit(c) || c == '-'; }))
    return refused("must be random, integer, rank1, equal, or a named kernel, as in gaussian:5,1.1");
  if (colon == std::string::npos) return std::nullopt;
  if (head == "random" || head == "integer" || head == "rank1" || head == "equal")
    return refused(fmt::format("{} takes no arguments", head));
  char before = ',';
  for (const char c : std::string_view(kernel).substr(colon + 1)) {
    const bool argument = lower(c) || digit(c) || c == '.' || c == '+' || c == '-';
    if (!argument && c != ',') return refused("arguments must be numbers with commas between, as in gaussian:5,1.1");
    if (c == ',' && before == ',') return refused("an argument is empty");
    before = c;
  }
  if (before == ',') return refused("an argument is empty");
  return std::nullopt;
}

std::optional<BrokenRule> valid_rule(const Filter2dProblem& problem) {
  if (rows(problem) < 1)
    return BrokenRule{
        "h", fmt::format("output rows P = h {} - r {} + 1 is {}: must be at least 1 under the border valid", problem.h,
                         problem.r, rows(problem))};
  if (columns(problem) < 1)
    return BrokenRule{"w",
                      fmt::format("output columns Q = w {} - s {} + 1 is {}: must be at least 1 under the border valid",
                                  problem.w, problem.s, columns(problem))};
  return std::nullopt;
}

std::optional<BrokenRule> alpha_rule(const Filter2dProblem& problem) {
  if (problem.alpha_channel == -1) return std::nullopt;
  if (problem.c < 2)
    return BrokenRule{"alpha", fmt::format("alpha channel is {}: it needs at least 2 channels, and c is {}",
                                           problem.alpha_channel, problem.c)};
  if (problem.alpha_channel < 0 || problem.alpha_channel >= problem.c)
    return BrokenRule{"alpha", fmt::format("alpha channel is {}: must be from 0 to {}, counted from 0",
                                           problem.alpha_channel, problem.c - 1)};
  return std::nullopt;
}

constexpr std::array<std::string_view, 16> filter2d_names{
    "u8",         "u16",       "s16",     "s32",        "f16",  "f32",   "f64",    "flip", "kernel:random",
    "constant:0", "replicate", "reflect", "reflect101", "wrap", "valid", "alpha:3"};
constexpr std::string_view kernel_prefix = "kernel:", alpha_prefix = "alpha:";

DataType read_type(std::string_view word, std::string_view part) {
  if (const auto type = parse_data_type(part)) return *type;
  if (part.empty()) refuse(word, "expected a type on both sides of >, as in u8>f32");
  refuse(part, fmt::format("expected a type; {}", suggest(part, std::span(filter2d_names).first(7))));
}

std::int64_t read_alpha(std::string_view word) {
  const std::string_view digits = word.substr(alpha_prefix.size());
  std::int64_t channel = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), channel);
  if (digits.empty() || leading(digits, '0', '9') != digits || status != std::errc())
    refuse(word, "expected the number of a channel, counted from 0, as in alpha:3");
  return channel;
}

void refuse_bad_extents(const Filter2dProblem& problem) {
  require_unbroken("filter2d", extent_rule<Filter2dProblem>(problem, filter2d_fields));
}

}  // namespace

std::optional<BrokenRule> first_broken_rule(const Filter2dProblem& problem) {
  const auto pixels = {DataType::u8,  DataType::u16, DataType::s16, DataType::s32,
                       DataType::f16, DataType::f32, DataType::f64};
  if (auto broken = type_rule("input type", problem.input, pixels)) return broken;
  if (auto broken = type_rule("output type", problem.output, pixels)) return broken;
  if (auto broken = extent_rule<Filter2dProblem>(problem, filter2d_fields)) return broken;
  if (problem.border.mode > BorderMode::valid)
    return BrokenRule{"border", fmt::format("border is mode number {}: must be one of the six modes",
                                            static_cast<int>(problem.border.mode))};
  if (problem.border.mode == BorderMode::constant && !std::isfinite(problem.border.value))
    return BrokenRule{"border", fmt::format("border value is {}: must be finite", problem.border.value)};
  if (auto broken = valid_rule(problem)) return broken;
  if (auto broken = alpha_rule(problem)) return broken;
  const Extent c{"c", "c", problem.c};
  if (auto broken = array_rule("the input", {{"h", "h", problem.h}, {"w", "w", problem.w}, c}, size_of(problem.input)))
    return broken;
  if (auto broken = array_rule("the output", {{"h", "P", rows(problem)}, {"w", "Q", columns(problem)}, c},
                               size_of(problem.output)))
    return broken;
  if (auto broken = array_rule("the kernel", {{"r", "r", problem.r}, {"s", "s", problem.s}}, sizeof(double)))
    return broken;
  if (auto broken = kernel_rule(problem.kernel)) return broken;
  return name_rule(problem.name);
}

Filter2dProblem operations::read_filter2d(const text::Words& line, text::Completeness completeness) {
  text::Places places;
  F problem;
  for (const std::string_view word : line.words) {
    const std::size_t arrow = word.find('>');
    if (word == "filter2d") continue;
    if (word.starts_with(kernel_prefix)) {
      places.claim("kernel", word);
      problem.kernel = word.substr(kernel_prefix.size());
    } else if (word.starts_with(alpha_prefix)) {
      places.claim("alpha", word);
      problem.alpha_channel = read_alpha(word);
    } else if (arrow != std::string_view::npos || parse_data_type(word)) {
      places.claim("type", word);
      problem.input = read_type(word, word.substr(0, arrow));
      problem.output = arrow == std::string_view::npos ? problem.input : read_type(word, word.substr(arrow + 1));
    } else if (word == "flip") {
      places.claim("flip", word);
      problem.flip = true;
    } else if (is_border_word(word)) {
      places.claim("border", word);
      try {
        problem.border = parse_border(word);
      } catch (const Error& error) {
        throw text::Refusal{word.data(), error.what()};
      }
    } else {
      text::read_geometry<F>(word, filter2d_letters, filter2d_names, problem, places);
    }
  }
  if (places.find("type").empty()) text::refuse_missing(line, "a type: u8, u16, s16, s32, f16, f32 or f64");
  return text::finish<F>(problem, line, filter2d_letters, places, completeness, first_broken_rule);
}

std::string print(const Filter2dProblem& p) {
  const std::string types =
      p.input == p.output ? std::string(name(p.input)) : fmt::format("{}>{}", name(p.input), name(p.output));
  const std::string geometry = fmt::format("h{}w{}{}r{}s{}", p.h, p.w, text::unless(p.c, 1, "c"), p.r, p.s);
  const std::string border = p.border.mode == BorderMode::replicate ? "" : to_text(p.border);
  const std::string alpha = p.alpha_channel < 0 ? "" : fmt::format("{}{}", alpha_prefix, p.alpha_channel);
  const std::string kernel = p.kernel == "random" ? "" : fmt::format("{}{}", kernel_prefix, p.kernel);
  return text::join_words(
      {"filter2d", types, geometry, border, p.flip ? "flip" : "", alpha, kernel, text::in_quotes(p.name)});
}

std::int64_t P(const Filter2dProblem& problem) {
  refuse_bad_extents(problem);
  return rows(problem);
}
std::int64_t Q(const Filter2dProblem& problem) {
  refuse_bad_extents(problem);
  return columns(problem);
}

bool Filter2dProblem::operator==(const Filter2dProblem& other) const {
  // Only a constant has a value.
  const bool same_border =
      border.mode == other.border.mode && (border.mode != BorderMode::constant || border.value == other.border.value);
  return same_border && input == other.input && output == other.output && h == other.h && w == other.w &&
         c == other.c && r == other.r && s == other.s && flip == other.flip && alpha_channel == other.alpha_channel &&
         kernel == other.kernel;
}

const text::Notation<Filter2dProblem>& operations::filter2d_notation() {
  static constexpr text::Notation<Filter2dProblem> notation{"filter2d", {}, filter2d_letters};
  return notation;
}

}  // namespace omniconv
