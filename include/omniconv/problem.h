// Problems: what is to be computed, as plain values with a one-line text form (docs/notation.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "omniconv/types.h"

namespace omniconv {

// 2-D filtering of an image x[h, w, c] (interleaved channels) by one r x s kernel, the same for every channel.
struct Filter2dProblem {
  DataType input = DataType::u8;
  DataType output = DataType::u8;
  std::int64_t h = 0, w = 0, c = 1, r = 0, s = 0;
  Border border;
  bool flip = false;  // true convolution: r and s reversed
  // The channel that holds opacity, by which colours are multiplied while they are filtered (docs/arithmetic.md, rule
  // 8); -1: all channels alike.
  std::int64_t alpha_channel = -1;
  std::string kernel = "random";  // what the weights are like: random, integer, rank1, equal, or a named kernel
  std::string name;               // no part of equality

  bool operator==(const Filter2dProblem& other) const;
};

enum class Pass : std::uint8_t { forward, backward_data, backward_filter };
enum class Layout : std::uint8_t { nchw, nhwc };

// Batched convolution: x is n,c,h,w; the filter is k,c/groups,r,s; y is n,k,P,Q.
struct Conv2dProblem {
  Pass pass = Pass::forward;
  DataType type = DataType::f32;
  Layout layout = Layout::nchw;
  bool flip = false, bias = false, relu = false, accumulate = false;
  std::int64_t n = 0, c = 0, h = 0, w = 0, k = 0, r = 0, s = 0;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t groups = 1;
  std::string name;

  bool operator==(const Conv2dProblem& other) const;
};

// c[m, n] = a[m, k] * b[k, n], row-major; a transposed operand is stored with its extents exchanged.
struct GemmProblem {
  DataType type = DataType::f32;
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  std::string name;

  bool operator==(const GemmProblem& other) const;
};

using Problem = std::variant<Filter2dProblem, Conv2dProblem, GemmProblem>;

// Extents of the output: rows P and columns Q.
std::int64_t P(const Conv2dProblem& problem);
std::int64_t Q(const Conv2dProblem& problem);
std::int64_t P(const Filter2dProblem& problem);
std::int64_t Q(const Filter2dProblem& problem);

// Throws bad_input naming the field, its value and the rule. Parsing validates too.
void validate(const Filter2dProblem& problem);
void validate(const Conv2dProblem& problem);
void validate(const GemmProblem& problem);

// One line to one problem. A bad line is refused with the column, what was found and what was expected.
Problem parse_problem(std::string_view line);
// A whole list: `#` comments and empty lines are skipped; errors begin with SOURCE:LINE.
std::vector<Problem> parse_problem_list(std::string_view text, std::string_view source);

// Canonical: defaults left out, fixed order, the shortest form, the name last.
std::string to_text(const Filter2dProblem& problem);
std::string to_text(const Conv2dProblem& problem);
std::string to_text(const GemmProblem& problem);
std::string to_text(const Problem& problem);

}  // namespace omniconv
