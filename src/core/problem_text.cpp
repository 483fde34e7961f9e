#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <utility>

#include "core/problem_rules.h"
#include "core/suggest.h"
#include "omniconv/error.h"
#include "omniconv/problem.h"

namespace omniconv {
namespace {

constexpr std::size_t longest_line = 4096;  // bytes; the longest problem there is, printed, takes less

// A refusal on its way to the place that knows the line, and so the column.
struct Refusal {
  const char* at;
  std::string message;
};

[[noreturn]] void refuse(std::string_view found, std::string_view expected) {
  throw Refusal{found.data(), fmt::format("found {}; {}", shown(found), expected)};
}

// The words of a line, as views into it.
struct Words {
  std::vector<std::string_view> words;  // without the name
  std::string_view quoted_name;         // with its quotes; empty when there is none
  std::string_view end;                 // empty, behind the last word
};

Words split(std::string_view line) {
  if (line.size() > longest_line)
    throw Refusal{line.data() + longest_line,
                  fmt::format("found a line of {} bytes; expected at most {}", line.size(), longest_line)};
  Words result{{}, {}, line.substr(0, 0)};
  for (std::size_t i = 0; i < line.size() && line[i] != '#';) {
    if (line[i] == ' ' || line[i] == '\t') {
      ++i;
      continue;
    }
    std::size_t end = 0;
    if (line[i] == '"') {
      const std::size_t close = line.find('"', i + 1);
      if (close == std::string_view::npos) refuse(line.substr(i), "expected a closing quote");
      end = close + 1;
      if (!result.quoted_name.empty()) refuse(line.substr(i, end - i), "expected one name");
      result.quoted_name = line.substr(i, end - i);
      if (end < line.size() && std::string_view(" \t#").find(line[end]) == std::string_view::npos)
        refuse(line.substr(end), "expected a space behind the name");
    } else {
      end = std::min(line.find_first_of(" \t#\"", i), line.size());
      if (end < line.size() && line[end] == '"') refuse(line.substr(end), "expected a space before the name");
      result.words.push_back(line.substr(i, end - i));
    }
    result.end = line.substr(end, 0);
    i = end;
  }
  return result;
}

// Where each thing was said; nothing is said twice.
class Places {
 public:
  void claim(std::string_view what, std::string_view found) {
    for (const auto& [known, where] : places_)
      if (known == what) refuse(found, fmt::format("expected one {}, and {} was given before", what, shown(where)));
    places_.emplace_back(what, found);
  }

  // Empty where it was not said.
  std::string_view find(std::string_view what) const {
    for (const auto& [known, where] : places_)
      if (known == what) return where;
    return {};
  }

 private:
  std::vector<std::pair<std::string_view, std::string_view>> places_;
};

// Letters of a geometry word. Those of one meaning exclude each other unless they are of the same form.
template <typename T>
struct LetterGroup {
  std::string_view letters, meaning;
  int form;
  bool required;
  std::array<std::int64_t T::*, 4> members;  // all that it sets; the rest null
};

using F = Filter2dProblem;
constexpr std::array<LetterGroup<F>, 5> filter2d_letters{{
    {"h", "rows", 0, true, {&F::h}},
    {"w", "columns", 0, true, {&F::w}},
    {"c", "channels", 0, false, {&F::c}},
    {"r", "kernel rows", 0, true, {&F::r}},
    {"s", "kernel columns", 0, true, {&F::s}},
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

using G = GemmProblem;
constexpr std::array<LetterGroup<G>, 4> gemm_letters{{
    {"m", "gemm_m", 0, true, {&G::m}},
    {"n", "gemm_n", 0, true, {&G::n}},
    {"k", "gemm_k", 0, true, {&G::k}},
    {"batch", "batch size", 0, false, {&G::batch}},
}};

template <typename T>
std::string list_letters(std::span<const LetterGroup<T>> groups) {
  std::string text;
  for (const auto& group : groups) text += fmt::format("{}{}", text.empty() ? "" : " ", group.letters);
  return text;
}

std::string_view leading(std::string_view text, char first, char last) {
  std::size_t length = 0;
  while (length < text.size() && text[length] >= first && text[length] <= last) ++length;
  return text.substr(0, length);
}

std::int64_t read_number(std::string_view letters, std::string_view digits, std::string_view rest) {
  if (digits.empty() && rest.empty()) refuse(letters, fmt::format("expected a number behind {}", letters));
  if (digits.empty()) refuse(rest, fmt::format("expected a number behind {}: digits only", letters));
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc()) refuse(digits, fmt::format("expected a number below 2^63 behind {}", letters));
  return value;
}

// One word of geometry. `exact_words` are what else it might have been meant to be.
template <typename T>
void read_geometry(std::string_view word, std::span<const LetterGroup<T>> groups,
                   std::span<const std::string_view> exact_words, T& problem, Places& places) {
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view letters = leading(rest, 'a', 'z');
    const std::string_view digits = leading(rest.substr(letters.size()), '0', '9');
    const std::string_view pair = rest.substr(0, letters.size() + digits.size());
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.letters == letters; });
    if (group == groups.end() && rest.size() == word.size())
      refuse(word, fmt::format("expected letters with numbers (of {}) or a known word; {}", list_letters<T>(groups),
                               suggest(word, exact_words)));
    if (group == groups.end()) refuse(rest, fmt::format("expected letters of {}", list_letters<T>(groups)));
    const std::int64_t value = read_number(letters, digits, rest.substr(letters.size()));
    for (const auto& other : groups) {
      if (other.meaning != group->meaning || other.form == group->form) continue;
      if (const std::string_view before = places.find(other.letters); !before.empty())
        refuse(pair, fmt::format("expected {} to be said in one way, and {} was given before", group->meaning,
                                 shown(before)));
    }
    places.claim(letters, pair);
    for (const auto member : group->members)
      if (member != nullptr) problem.*member = value;
    rest.remove_prefix(pair.size());
  }
}

// What every kind of problem ends with.
template <typename T>
T finish(T problem, const Words& line, std::span<const LetterGroup<T>> groups, const Places& places) {
  std::string missing;
  for (const auto& group : groups)
    if (group.required && places.find(group.letters).empty())
      missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", group.letters, group.meaning);
  if (!missing.empty()) throw Refusal{line.end.data(), fmt::format("found the end of the line; expected {}", missing)};
  if (!line.quoted_name.empty()) problem.name = line.quoted_name.substr(1, line.quoted_name.size() - 2);
  if (const auto broken = first_broken_rule(problem)) {
    std::string_view blamed = broken->word == "name" ? line.quoted_name : places.find(broken->word);
    // A stride of one axis may have been said for both.
    if (blamed.empty()) blamed = places.find(broken->word.substr(0, 1));
    if (blamed.empty()) blamed = line.words.front();
    refuse(blamed, broken->message);
  }
  return problem;
}

// A word that stands for itself.
template <typename T>
struct ExactWord {
  std::string_view text, what;
  void (*apply)(T&);
};

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
constexpr std::array<ExactWord<G>, 9> gemm_words{{
    {"f32", "type", [](G& p) { p.type = DataType::f32; }},
    {"f64", "type", [](G& p) { p.type = DataType::f64; }},
    {"f16", "type", [](G& p) { p.type = DataType::f16; }},
    {"bf16", "type", [](G& p) { p.type = DataType::bf16; }},
    {"tf32", "type", [](G& p) { p.type = DataType::tf32; }},
    {"nn", "transposition", [](G&) {}},
    {"nt", "transposition", [](G& p) { p.transpose_b = true; }},
    {"tn", "transposition", [](G& p) { p.transpose_a = true; }},
    {"tt", "transposition", [](G& p) { p.transpose_a = p.transpose_b = true; }},
}};

template <typename T>
T read_exact_words_and_geometry(const Words& line, std::span<const ExactWord<T>> exact,
                                std::span<const LetterGroup<T>> groups, std::string_view operation, Places& places) {
  std::vector<std::string_view> names{"filter2d", "gemm"};
  for (const auto& word : exact) names.push_back(word.text);
  T problem;
  for (const std::string_view word : line.words) {
    if (word == operation) continue;
    const auto known = std::find_if(exact.begin(), exact.end(), [&](const auto& e) { return e.text == word; });
    if (known == exact.end()) {
      read_geometry<T>(word, groups, names, problem, places);
      continue;
    }
    places.claim(known->what, word);
    known->apply(problem);
  }
  return problem;
}

[[noreturn]] void refuse_missing(const Words& line, std::string_view expected) {
  throw Refusal{line.end.data(), fmt::format("found the end of the line; expected {}", expected)};
}

Problem read_conv2d(const Words& line) {
  Places places;
  return finish<C>(read_exact_words_and_geometry<C>(line, conv2d_words, conv2d_letters, "", places), line,
                   conv2d_letters, places);
}

Problem read_gemm(const Words& line) {
  Places places;
  const G problem = read_exact_words_and_geometry<G>(line, gemm_words, gemm_letters, "gemm", places);
  if (places.find("type").empty()) refuse_missing(line, "a type: f32, f64, f16, bf16 or tf32");
  if (places.find("transposition").empty())
    refuse_missing(line, "nn, nt, tn or tt: which of the operands are transposed");
  return finish<G>(problem, line, gemm_letters, places);
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

Problem read_filter2d(const Words& line) {
  Places places;
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
        throw Refusal{word.data(), error.what()};
      }
    } else {
      read_geometry<F>(word, filter2d_letters, filter2d_names, problem, places);
    }
  }
  if (places.find("type").empty()) refuse_missing(line, "a type: u8, u16, s16, s32, f16, f32 or f64");
  return finish<F>(problem, line, filter2d_letters, places);
}

Problem read_problem(const Words& line) {
  std::string_view operation;
  for (const std::string_view word : line.words) {
    if (word != "filter2d" && word != "gemm") continue;
    if (!operation.empty()) refuse(word, fmt::format("expected one operation, and {} was given before", operation));
    operation = word;
  }
  if (operation == "filter2d") return read_filter2d(line);
  if (operation == "gemm") return read_gemm(line);
  return read_conv2d(line);
}

// Nothing where the line holds nothing but space and comment. `where` begins the error.
std::optional<Problem> read_line(std::string_view line, std::string_view where) {
  try {
    const Words words = split(line);
    if (words.words.empty() && words.quoted_name.empty()) return std::nullopt;
    return read_problem(words);
  } catch (const Refusal& refusal) {
    // Columns count characters: continuation bytes of UTF-8 add none.
    const auto column = 1 + std::count_if(line.data(), refusal.at,
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    throw bad_input(fmt::format("{}column {}: {}", where, column, refusal.message));
  }
}

std::string in_quotes(const std::string& name) {
  return name.empty() ? "" : fmt::format("\"{}\"", name);
}

std::string join_words(std::initializer_list<std::string_view> words) {
  std::string text;
  for (const std::string_view word : words)
    if (!word.empty()) text += fmt::format("{}{}", text.empty() ? "" : " ", word);
  return text;
}

std::string unless(std::int64_t value, std::int64_t usual, std::string_view letters) {
  return value == usual ? "" : fmt::format("{}{}", letters, value);
}

std::string two_axes(char letter, std::int64_t h, std::int64_t w, std::int64_t usual) {
  if (h == w) return unless(h, usual, std::string_view(&letter, 1));
  return unless(h, usual, fmt::format("{}h", letter)) + unless(w, usual, fmt::format("{}w", letter));
}

std::string padding(const Conv2dProblem& p) {
  if (p.pad_top == p.pad_bottom && p.pad_left == p.pad_right) return two_axes('p', p.pad_top, p.pad_left, 0);
  return unless(p.pad_top, 0, "pt") + unless(p.pad_bottom, 0, "pb") + unless(p.pad_left, 0, "pl") +
         unless(p.pad_right, 0, "pr");
}

std::string_view printed(Pass pass) {
  if (pass == Pass::forward) return "";
  return pass == Pass::backward_data ? "bwd_data" : "bwd_filter";
}

}  // namespace

Problem parse_problem(std::string_view line) {
  if (auto problem = read_line(line, "problem text, ")) return *std::move(problem);
  throw bad_input("problem text, column 1: found an empty line; expected a problem, as in n1c3h8w8k4r3s3");
}

std::vector<Problem> parse_problem_list(std::string_view text, std::string_view source) {
  std::vector<Problem> problems;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (auto problem = read_line(line, fmt::format("{}:{}: ", source, number))) problems.push_back(*std::move(problem));
  }
  return problems;
}

std::string to_text(const Filter2dProblem& p) {
  const std::string types =
      p.input == p.output ? std::string(name(p.input)) : fmt::format("{}>{}", name(p.input), name(p.output));
  const std::string geometry = fmt::format("h{}w{}{}r{}s{}", p.h, p.w, unless(p.c, 1, "c"), p.r, p.s);
  const std::string border = p.border.mode == BorderMode::replicate ? "" : to_text(p.border);
  const std::string alpha = p.alpha_channel < 0 ? "" : fmt::format("{}{}", alpha_prefix, p.alpha_channel);
  const std::string kernel = p.kernel == "random" ? "" : fmt::format("{}{}", kernel_prefix, p.kernel);
  return join_words({"filter2d", types, geometry, border, p.flip ? "flip" : "", alpha, kernel, in_quotes(p.name)});
}

std::string to_text(const Conv2dProblem& p) {
  const std::string geometry = fmt::format("n{}c{}h{}w{}k{}r{}s{}{}{}{}{}", p.n, p.c, p.h, p.w, p.k, p.r, p.s,
                                           padding(p), two_axes('u', p.stride_h, p.stride_w, 1),
                                           two_axes('d', p.dilation_h, p.dilation_w, 1), unless(p.groups, 1, "g"));
  return join_words({printed(p.pass), p.type == DataType::f32 ? "" : name(p.type),
                     p.layout == Layout::nhwc ? "nhwc" : "", p.flip ? "flip" : "", p.bias ? "bias" : "",
                     p.relu ? "relu" : "", p.accumulate ? "acc" : "", geometry, in_quotes(p.name)});
}

std::string to_text(const GemmProblem& p) {
  const char operands[] = {p.transpose_a ? 't' : 'n', p.transpose_b ? 't' : 'n'};
  return join_words({"gemm", name(p.type), std::string_view(operands, 2), fmt::format("m{}n{}k{}", p.m, p.n, p.k),
                     unless(p.batch, 1, "batch"), in_quotes(p.name)});
}

std::string to_text(const Problem& problem) {
  return std::visit([](const auto& one) { return to_text(one); }, problem);
}

}  // namespace omniconv
