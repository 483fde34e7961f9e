#include "omniconv/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <span>

#include "core/checked.h"
#include "core/problem_rules.h"

namespace omniconv {
namespace {

template <typename T>
struct Field {
  std::string_view letters, name;
  std::int64_t T::*member;
  std::int64_t least;
};

constexpr std::array<Field<Filter2dProblem>, 5> filter2d_fields{{
    {"h", "h", &Filter2dProblem::h, 1},
    {"w", "w", &Filter2dProblem::w, 1},
    {"c", "c", &Filter2dProblem::c, 1},
    {"r", "r", &Filter2dProblem::r, 1},
    {"s", "s", &Filter2dProblem::s, 1},
}};
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
constexpr std::array<Field<GemmProblem>, 4> gemm_fields{{
    {"m", "m", &GemmProblem::m, 1},
    {"n", "n", &GemmProblem::n, 1},
    {"k", "k", &GemmProblem::k, 1},
    {"batch", "batch", &GemmProblem::batch, 1},
}};

template <typename T>
std::optional<BrokenRule> extent_rule(const T& problem, std::span<const Field<T>> fields) {
  for (const Field<T>& field : fields)
    if (problem.*field.member < field.least)
      return BrokenRule{field.letters,
                        fmt::format("{} is {}: must be at least {}", field.name, problem.*field.member, field.least)};
  return std::nullopt;
}

std::optional<BrokenRule> type_rule(std::string_view what, DataType type, std::initializer_list<DataType> allowed) {
  if (std::find(allowed.begin(), allowed.end(), type) != allowed.end()) return std::nullopt;
  std::string names;
  for (const DataType one : allowed) names += fmt::format("{}{}", names.empty() ? "" : ", ", name(one));
  const auto number = static_cast<int>(type);
  const std::string found = type <= DataType::f64 ? std::string(name(type)) : fmt::format("number {}", number);
  return BrokenRule{"type", fmt::format("{} is {}: must be one of {}", what, found, names)};
}

std::optional<BrokenRule> matrix_type_rule(DataType type) {
  return type_rule("type", type, {DataType::f32, DataType::f64, DataType::f16, DataType::bf16, DataType::tf32});
}

struct Extent {
  std::string_view letters, name;
  std::int64_t value;
};

// Extents are at least 1. The word to blame is the largest of them.
std::optional<BrokenRule> array_rule(std::string_view array, std::initializer_list<Extent> extents,
                                     std::int64_t bytes) {
  std::int64_t total = bytes;
  bool fits = true;
  for (const Extent& extent : extents)
    fits = fits && !__builtin_mul_overflow(total, extent.value, &total) && total <= largest_array_bytes;
  if (fits) return std::nullopt;
  std::string names, values;
  const Extent* largest = extents.begin();
  for (const Extent& extent : extents) {
    names += fmt::format("{}{}", names.empty() ? "" : "*", extent.name);
    values += fmt::format("{}{}", values.empty() ? "" : "*", extent.value);
    if (extent.value > largest->value) largest = &extent;
  }
  return BrokenRule{largest->letters, fmt::format("{} holds {} = {} elements of {} bytes: must be at most 2^60 bytes",
                                                  array, names, values, bytes)};
}

// Well-formed UTF-8 without control characters and quotes: the name goes into one line of text, and into JSON.
bool is_plain_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7F || lead == '"') return false;
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (length == 0 || i + length > text.size()) return false;
    std::uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t j = 1; j < length; ++j) {
      const auto next = static_cast<unsigned char>(text[i + j]);
      if ((next & 0xC0) != 0x80) return false;
      code = (code << 6) | (next & 0x3Fu);
    }
    const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
    const bool control = code >= 0x80 && code < 0xA0;
    if (overlong || control || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return false;
    i += length;
  }
  return true;
}

std::optional<BrokenRule> name_rule(const std::string& name) {
  if (name.size() > longest_name)
    return BrokenRule{"name", fmt::format("name of {} bytes: must be at most {}", name.size(), longest_name)};
  if (!is_plain_text(name))
    return BrokenRule{"name",
                      fmt::format("name is {}: must be UTF-8 without quotes and control characters", shown(name))};
  return std::nullopt;
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

// floor((extent + before + after - dilation * (window - 1) - 1) / stride) + 1, of extents that were checked.
std::int64_t output_extent(std::string_view input, std::int64_t extent, std::int64_t before, std::int64_t after,
                           std::string_view filter, std::int64_t window, std::int64_t dilation, std::int64_t stride) {
  const std::string padded_name = fmt::format("{} with its padding", input);
  const std::string reach_name = fmt::format("{} with its dilation", filter);
  const std::int64_t padded = checked_add(checked_add(extent, before, padded_name), after, padded_name);
  const std::int64_t reach = checked_add(checked_multiply(dilation, window - 1, reach_name), 1, reach_name);
  const std::int64_t room = padded - reach;  // both are positive
  return room / stride - (room % stride < 0 ? 1 : 0) + 1;
}

std::int64_t rows(const Conv2dProblem& p) {
  return output_extent("h", p.h, p.pad_top, p.pad_bottom, "r", p.r, p.dilation_h, p.stride_h);
}
std::int64_t columns(const Conv2dProblem& p) {
  return output_extent("w", p.w, p.pad_left, p.pad_right, "s", p.s, p.dilation_w, p.stride_w);
}
std::int64_t rows(const Filter2dProblem& p) {
  return p.border.mode == BorderMode::valid ? p.h - (p.r - 1) : p.h;
}
std::int64_t columns(const Filter2dProblem& p) {
  return p.border.mode == BorderMode::valid ? p.w - (p.s - 1) : p.w;
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

template <typename T>
void refuse_bad_extents(const T& problem, std::span<const Field<T>> fields, std::string_view operation) {
  if (const auto broken = extent_rule<T>(problem, fields))
    throw bad_input(fmt::format("{} problem: {}", operation, broken->message));
}

template <typename T>
void refuse_broken(const T& problem, std::string_view operation) {
  if (const auto broken = first_broken_rule(problem))
    throw bad_input(fmt::format("{} problem: {}", operation, broken->message));
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string result = "'";
  for (const char c : text.substr(0, longest)) {
    if (c >= 0x20 && c < 0x7F)
      result += c;
    else
      result += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
  }
  return result + (text.size() > longest ? "...'" : "'");
}

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

std::optional<BrokenRule> first_broken_rule(const Conv2dProblem& problem) {
  if (problem.pass > Pass::backward_filter)
    return BrokenRule{"pass", fmt::format("pass is number {}: must be forward, backward_data or backward_filter",
                                          static_cast<int>(problem.pass))};
  if (auto broken = matrix_type_rule(problem.type)) return broken;
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

std::optional<BrokenRule> first_broken_rule(const GemmProblem& problem) {
  if (auto broken = matrix_type_rule(problem.type)) return broken;
  if (auto broken = extent_rule<GemmProblem>(problem, gemm_fields)) return broken;
  const Extent batch{"batch", "batch", problem.batch};
  const Extent m{"m", "m", problem.m}, n{"n", "n", problem.n}, k{"k", "k", problem.k};
  const std::int64_t bytes = size_of(problem.type);
  if (auto broken = array_rule("a", {batch, m, k}, bytes)) return broken;
  if (auto broken = array_rule("b", {batch, k, n}, bytes)) return broken;
  if (auto broken = array_rule("c", {batch, m, n}, bytes)) return broken;
  return name_rule(problem.name);
}

void validate(const Filter2dProblem& problem) {
  refuse_broken(problem, "filter2d");
}
void validate(const Conv2dProblem& problem) {
  refuse_broken(problem, "conv2d");
}
void validate(const GemmProblem& problem) {
  refuse_broken(problem, "gemm");
}

std::int64_t P(const Conv2dProblem& problem) {
  refuse_bad_extents<Conv2dProblem>(problem, conv2d_fields, "conv2d");
  return rows(problem);
}
std::int64_t Q(const Conv2dProblem& problem) {
  refuse_bad_extents<Conv2dProblem>(problem, conv2d_fields, "conv2d");
  return columns(problem);
}
std::int64_t P(const Filter2dProblem& problem) {
  refuse_bad_extents<Filter2dProblem>(problem, filter2d_fields, "filter2d");
  return rows(problem);
}
std::int64_t Q(const Filter2dProblem& problem) {
  refuse_bad_extents<Filter2dProblem>(problem, filter2d_fields, "filter2d");
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

bool Conv2dProblem::operator==(const Conv2dProblem& other) const {
  for (const auto& field : conv2d_fields)
    if (this->*field.member != other.*field.member) return false;
  return pass == other.pass && type == other.type && layout == other.layout && flip == other.flip &&
         bias == other.bias && relu == other.relu && accumulate == other.accumulate;
}

bool GemmProblem::operator==(const GemmProblem& other) const {
  for (const auto& field : gemm_fields)
    if (this->*field.member != other.*field.member) return false;
  return type == other.type && transpose_a == other.transpose_a && transpose_b == other.transpose_b;
}

}  // namespace omniconv
