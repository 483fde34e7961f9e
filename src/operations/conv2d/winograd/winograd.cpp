#include "operations/conv2d/winograd/winograd.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"

namespace omniconv::operations {
namespace {

// Numbers of a row that are not zero: a term of such a row passes one product and all but one of the sums.
template <typename Matrix>
double longest_row(const Matrix& matrix) {
  std::ptrdiff_t longest = 0;
  for (const auto& row : matrix)
    longest = std::max(longest, std::count_if(row.begin(), row.end(), [](double value) { return value != 0; }));
  return static_cast<double>(longest);
}

template <int outputs, int taps>
WinogradError error_of() {
  constexpr auto& m = winograd_matrices<outputs, taps>;
  double largest = 0;
  for (const auto& of_output : m.output)
    for (std::size_t j = 0; j < static_cast<std::size_t>(taps); ++j) {
      double sum = 0;
      for (std::size_t e = 0; e < m.input.size(); ++e) {
        double inputs = 0;
        for (const double value : m.input[e]) inputs += std::fabs(value);
        sum += std::fabs(of_output[e] * m.filter[e][j]) * inputs;
      }
      largest = std::max(largest, sum);
    }
  // The filter's numbers are rounded themselves.
  const double roundings = longest_row(m.input) + longest_row(m.filter) + 1 + longest_row(m.output);
  // Where divisors are powers of two, all numbers are multiples of the fraction that both axes leave.
  double fraction = 0;
  for (const double divisor : m.divisors) {
    if (std::exp2(std::round(std::log2(std::fabs(divisor)))) != std::fabs(divisor))
      return {largest * largest, 2 * roundings, 0};
    fraction = std::max(fraction, std::fabs(divisor));
  }
  return {largest * largest, 2 * roundings, largest * largest * fraction * fraction};
}

}  // namespace

WinogradError winograd_error(WinogradForm form) {
  if (form.outputs == 3) return form.taps == 4 ? error_of<3, 4>() : error_of<3, 2>();
  if (form.taps == 5) return error_of<2, 5>();
  return form.outputs == 4 ? error_of<4, 3>() : error_of<2, 3>();
}

ErrorBound winograd_bound(const Conv2dProblem& problem, WinogradForm form, double chain) {
  const WinogradError error = winograd_error(form);
  ErrorBound bound = conv2d_bound(problem, chain, error.roundings / 2 + 2);
  bound.amplification = error.amplification;
  const bool of_filter = problem.pass == Pass::backward_filter;
  bound.norm = of_filter ? "sum(sum|dy| * max|x| of the tile)" : "sum(sum|w| * max|x| of the tile)";
  bound.tile = {form.tile(problem.pass), form.tile(problem.pass)};
  bound.rounds_integers = error.integer_scale == 0;
  bound.integer_scale = error.integer_scale;
  return bound;
}

WinogradShape::WinogradShape(const Conv2dProblem& problem, WinogradForm form) {
  const Conv2dShape g(problem);
  const bool forward = problem.pass != Pass::backward_data;
  const std::int64_t tile = form.tile(problem.pass);
  source = forward ? g.c_group : g.k_group;
  target = forward ? g.k_group : g.c_group;
  source_h = forward ? g.h : g.p, source_w = forward ? g.w : g.q;
  target_h = forward ? g.p : g.h, target_w = forward ? g.q : g.w;
  top = forward ? g.pad_top : g.r - 1 - g.pad_top;
  left = forward ? g.pad_left : g.s - 1 - g.pad_left;
  turned = forward == g.flip;
  tile_rows = divide_up(target_h, tile);
  tile_columns = divide_up(target_w, tile);
  tiles = g.n * tile_rows * tile_columns;
}

const char* winograd_refusal(const Conv2dProblem& problem) {
  if (problem.r != problem.s || (problem.r != 3 && problem.r != 5)) return "serves filters of 3 x 3 and 5 x 5";
  if (problem.stride_h != 1 || problem.stride_w != 1) return "serves strides of 1: tiles of outputs share their inputs";
  if (problem.dilation_h != 1 || problem.dilation_w != 1) return "serves filters without dilation";
  constexpr std::int64_t most_channels = std::int64_t{1} << 24;  // so that sizes of panels need no checks
  if (std::max(problem.c, problem.k) / problem.groups > most_channels) return "serves groups of up to 2^24 channels";
  return "";
}

}  // namespace omniconv::operations
