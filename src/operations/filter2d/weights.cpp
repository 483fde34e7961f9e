#include "operations/filter2d/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/border_map.h"
#include "core/checked.h"
#include "core/convert.h"
#include "omniconv/error.h"
#include "operations/filter2d/opacity.h"

namespace omniconv {
namespace {

constexpr double exact_f32_integers = 0x1p24;

// Not inlined: GCC 12 drops the way through float and back where it vectorises two of them.
[[gnu::noinline]] double round_to(DataType type, double value) {
  return type == DataType::f64 ? value : static_cast<double>(static_cast<float>(value));
}

// The distance of neighbouring values of the accumulating type at w.
double unit_in_last_place(DataType type, double w) {
  const int digits = type == DataType::f64 ? 53 : 24;
  const int lowest = type == DataType::f64 ? -1074 : -149;
  if (w == 0) return std::ldexp(1.0, lowest);
  return std::ldexp(1.0, std::max(std::ilogb(w) - digits + 1, lowest));
}

double sum_of_magnitudes(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, double w) { return sum + std::fabs(w); });
}

double largest_pixel(DataType type) {
  return std::max(-lowest_value(type), highest_value(type));
}

bool all_equal(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [&](double w) { return w == values.front(); });
}

// Rule 3 of docs/arithmetic.md. Fills column and row and answers whether their product stands for the weights.
bool factor(Weights& weights) {
  if (weights.r < 2 || weights.s < 2) return false;
  const auto larger = [](double a, double b) { return std::fabs(a) < std::fabs(b); };
  const auto pivot = std::max_element(weights.values.begin(), weights.values.end(), larger) - weights.values.begin();
  const std::int64_t pivot_row = pivot / weights.s, pivot_column = pivot % weights.s;
  const auto at = [&](std::int64_t i, std::int64_t j) {
    return weights.values[static_cast<std::size_t>(i * weights.s + j)];
  };
  weights.row.clear();
  weights.column.clear();
  for (std::int64_t j = 0; j < weights.s; ++j) weights.row.push_back(at(pivot_row, j));
  for (std::int64_t i = 0; i < weights.r; ++i)
    weights.column.push_back(round_to(weights.accumulate, at(i, pivot_column) / at(pivot_row, pivot_column)));
  for (std::int64_t i = 0; i < weights.r; ++i)
    for (std::int64_t j = 0; j < weights.s; ++j) {
      const double w = at(i, j);
      const double error =
          std::fma(weights.column[static_cast<std::size_t>(i)], weights.row[static_cast<std::size_t>(j)], -w);
      if (std::fabs(error) > 2 * unit_in_last_place(weights.accumulate, w)) return false;
    }
  return true;
}

// Whether sums of weights times pixels stay multiples of one unit and below 2^24 of it, both as one chain and, for rank
// one, as row and column.
bool always_exact(const Weights& weights, DataType input) {
  if (!is_integer(input)) return false;
  const double pixel = largest_pixel(input);
  const double smallest_unit = 0x1p-60;  // far above the subnormals, where fp32 has fewer digits
  const double largest_sum = 0x1p100;    // far below overflow, which depends on the order of addition
  const double unit = common_unit(weights.values);
  if (sum_of_magnitudes(weights.values) * pixel > largest_sum) return false;
  if (unit < smallest_unit || sum_of_magnitudes(weights.values) * pixel > exact_f32_integers * unit) return false;
  if (weights.form != WeightForm::rank_one) return true;
  for (std::size_t i = 0; i < weights.column.size(); ++i)
    for (std::size_t j = 0; j < weights.row.size(); ++j)
      if (weights.column[i] * weights.row[j] != weights.values[i * weights.row.size() + j]) return false;
  const double row_unit = common_unit(weights.row), column_unit = common_unit(weights.column);
  const double row_sum = sum_of_magnitudes(weights.row) * pixel;
  return row_unit * column_unit >= smallest_unit && row_sum <= largest_sum &&
         row_sum <= exact_f32_integers * row_unit &&
         row_sum * sum_of_magnitudes(weights.column) <= exact_f32_integers * row_unit * column_unit;
}

void check_finite(double value, std::string_view what) {
  if (!std::isfinite(value)) throw bad_input(fmt::format("{} is {}: it must be finite, in fp32 too", what, value));
}

std::int64_t anchor_or_middle(std::optional<std::int64_t> anchor, std::int64_t size, std::string_view axis) {
  const std::int64_t value = anchor.value_or(size / 2);
  if (value < 0 || value >= size)
    throw bad_input(
        fmt::format("anchor {}={} lies outside the kernel: it must be from 0 to {}", axis, value, size - 1));
  return value;
}

double stored_value(DataType type, double value) {
  std::byte stored[8];
  store_element(type, value, stored);
  return load_element(type, stored);
}

}  // namespace

std::string_view name(WeightForm form) {
  switch (form) {
    case WeightForm::equal: return "equal weights";
    case WeightForm::rank_one: return "rank one";
    case WeightForm::general: return "general";
  }
  return "?";
}

double common_unit(const std::vector<double>& values) {
  int exponent = std::numeric_limits<int>::max();
  for (const double value : values) {
    if (value == 0) continue;
    int e = 0;
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(std::fabs(value), &e), 53));
    exponent = std::min(exponent, e - 53 + __builtin_ctzll(static_cast<unsigned long long>(mantissa)));
  }
  return exponent == std::numeric_limits<int>::max() ? 1.0 : std::ldexp(1.0, exponent);
}

bool is_bit_exact(const Filter2dProblem& problem) {
  return is_integer(problem.input);
}

double largest_sum(const Weights& weights, DataType input) {
  double positive = 0, negative = 0;
  for (const double w : weights.values) (w > 0 ? positive : negative) += std::fabs(w);
  const double highest = highest_value(input), lowest = -lowest_value(input);
  return std::max(positive * highest + negative * lowest, positive * lowest + negative * highest);
}

bool pixel_sums_fit_f32(const Filter2dTask& task) {
  const double taps = static_cast<double>(task.weights.r) * static_cast<double>(task.weights.s);
  return taps * largest_pixel(task.problem.input) <= exact_f32_integers;
}

RowSpan input_rows_for(const Filter2dTask& task, std::int64_t output_first, std::int64_t output_rows) {
  const Filter2dProblem& problem = task.problem;
  const std::int64_t first = output_first - task.weights.anchor_y, last = first + output_rows + problem.r - 1;
  if (problem.border.mode == BorderMode::wrap) return {first, last};
  RowSpan span{std::clamp<std::int64_t>(first, 0, problem.h - 1), std::clamp<std::int64_t>(last, 1, problem.h)};
  const auto include = [&](std::int64_t row) {
    const std::int64_t mapped = border_index(problem.border.mode, row, problem.h);
    if (mapped < 0) return;
    span.first = std::min(span.first, mapped);
    span.last = std::max(span.last, mapped + 1);
  };
  for (std::int64_t row = first; row < std::min<std::int64_t>(last, 0); ++row) include(row);
  for (std::int64_t row = std::max(first, problem.h); row < last; ++row) include(row);
  return span;
}

namespace {

// `which` names the weights in errors: "" or "second ".
Weights analyse_kernel(const Filter2dProblem& problem, const Filter& filter, const std::vector<double>& given,
                       std::string_view which) {
  validate(problem);
  Weights weights;
  weights.r = problem.r;
  weights.s = problem.s;
  const bool floating = !is_integer(problem.input);
  if (floating && (problem.input == DataType::f64 || problem.output == DataType::f64))
    weights.accumulate = DataType::f64;

  const std::int64_t taps = checked_multiply(problem.r, problem.s, "the number of weights");
  if (static_cast<std::int64_t>(given.size()) != taps)
    throw bad_input(
        fmt::format("the filter has {} {}weights: r{}s{} needs {}", given.size(), which, problem.r, problem.s, taps));
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double rounded = round_to(weights.accumulate, given[i]);
    if (!std::isfinite(rounded))
      check_finite(rounded, fmt::format("the {}weight in row {}, column {} ({})", which,
                                        static_cast<std::int64_t>(i) / problem.s + 1,
                                        static_cast<std::int64_t>(i) % problem.s + 1, given[i]));
    weights.values.push_back(rounded);
  }
  if (sum_of_magnitudes(weights.values) == 0)
    throw bad_input(fmt::format(
        "all {}weights are zero: the result would hold nothing of the image; give at least one other weight", which));

  weights.anchor_y = anchor_or_middle(filter.anchor_y, problem.r, "y");
  weights.anchor_x = anchor_or_middle(filter.anchor_x, problem.s, "x");
  if (problem.flip) {
    std::reverse(weights.values.begin(), weights.values.end());
    weights.anchor_y = problem.r - 1 - weights.anchor_y;
    weights.anchor_x = problem.s - 1 - weights.anchor_x;
  }
  if (problem.border.mode == BorderMode::valid) weights.anchor_y = weights.anchor_x = 0;

  weights.scale = round_to(weights.accumulate, filter.scale);
  weights.bias = round_to(weights.accumulate, filter.bias);
  check_finite(weights.scale, "the scale");
  check_finite(weights.bias, "the bias");
  weights.border_value = stored_value(problem.input, problem.border.value);
  check_finite(weights.border_value, "the border's constant, in the image's type,");

  // Where only a bound is promised, equal weights are best served as rank one.
  if (!floating && all_equal(weights.values))
    weights.form = WeightForm::equal;
  else if (factor(weights))
    weights.form = WeightForm::rank_one;
  if (weights.form != WeightForm::rank_one) weights.row.clear(), weights.column.clear();
  weights.exact = always_exact(weights, problem.input);
  if (problem.alpha_channel >= 0) decide_alpha(problem, filter, weights);
  return weights;
}

}  // namespace

Weights analyse(const Filter2dProblem& problem, const Filter& filter) {
  return analyse_kernel(problem, filter, filter.weights, "");
}

Filter2dTask task_for(const Filter2dProblem& problem, const Filter& filter) {
  Filter2dTask task{problem, analyse(problem, filter)};
  if (filter.second_weights.empty()) return task;
  if (problem.alpha_channel >= 0)
    throw bad_input(fmt::format(
        "alpha:{} beside the magnitude of a pair of kernels: a pair has no weights for opacity to be summed "
        "by; leave alpha out, and copy that channel",
        problem.alpha_channel));
  task.second = analyse_kernel(problem, filter, filter.second_weights, "second ");
  return task;
}

}  // namespace omniconv
