#include "operations/filter2d/opacity.h"

#include <fmt/format.h>

#include <cmath>

#include "core/convert.h"
#include "omniconv/error.h"
#include "operations/filter2d/pixel_type.h"

namespace omniconv {
namespace {

// Weights count as summing to zero below this share of the sum of their magnitudes: what is left of a Laplacian of
// Gaussian in fp32 is rounding, and no share of the pixels' opacity.
constexpr double least_share = 0x1p-12;

// The sum of the weights as the chains of rules 2 to 5 form it over ones.
template <typename Real>
Real sum_over_ones(const Weights& weights) {
  const auto chain = [](std::size_t count, Real x, const auto& weight) {
    Real sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum = std::fma(weight(i), x, sum);
    return sum;
  };
  const auto of = [](const std::vector<double>& values) {
    return [&values](std::size_t i) { return static_cast<Real>(values[i]); };
  };
  const auto one = [](std::size_t) { return Real{1}; };
  const auto r = static_cast<std::size_t>(weights.r), s = static_cast<std::size_t>(weights.s);
  switch (weights.form) {
    case WeightForm::equal: return chain(r, chain(s, 1, one), one) * static_cast<Real>(weights.values.front());
    case WeightForm::rank_one: return chain(r, chain(s, 1, of(weights.row)), of(weights.column));
    case WeightForm::general: break;
  }
  return chain(weights.values.size(), 1, of(weights.values));
}

void check_opaque(double value, const char* what) {
  if (!std::isfinite(value) || value < 0)
    throw bad_input(
        fmt::format("the value of full opacity of the {} is {}: it must be a positive number", what, value));
}

// In the accumulating type.
double opacity_unit(DataType input, double opaque_input, bool f64) {
  const double opaque = full_opacity(input, opaque_input);
  return f64 ? 1 / opaque : static_cast<double>(1 / static_cast<float>(opaque));
}

template <DataType input, DataType output, typename Real>
void copy_pixels(const std::byte* from, std::int64_t from_step, std::byte* to, std::int64_t to_step, std::int64_t count,
                 bool as_is, Real unit, Real opaque) {
  for (std::int64_t i = 0; i < count; ++i, from += from_step, to += to_step) {
    const double value = load_element(input, from);
    if (as_is)
      store_element(output, value, to);
    else
      store_element(output, static_cast<Real>(value) * unit * opaque, to);
  }
}

}  // namespace

double full_opacity(DataType type, double given) {
  if (given != 0) return given;
  return is_integer(type) ? highest_value(type) : 1;
}

bool keeps_opacity(const Filter2dProblem& problem, double opaque_input, double opaque_output) {
  return full_opacity(problem.input, opaque_input) == full_opacity(problem.output, opaque_output);
}

void decide_alpha(const Filter2dProblem& problem, const Filter& filter, Weights& weights) {
  check_opaque(filter.opaque_input, "input");
  check_opaque(filter.opaque_output, "output");
  const bool f64 = weights.accumulate == DataType::f64;
  weights.opacity_unit = opacity_unit(problem.input, filter.opaque_input, f64);
  weights.opaque_output = full_opacity(problem.output, filter.opaque_output);
  if (!f64) weights.opaque_output = static_cast<float>(weights.opaque_output);
  weights.keeps_opacity = keeps_opacity(problem, filter.opaque_input, filter.opaque_output);
  double sum = 0, magnitude = 0;
  for (const double w : weights.values) sum += w, magnitude += std::fabs(w);
  weights.opaque_sum = f64 ? sum_over_ones<double>(weights) : static_cast<double>(sum_over_ones<float>(weights));
  const bool positive = sum > least_share * magnitude && weights.opaque_sum > 0;
  weights.alpha_rule = positive ? AlphaRule::premultiplied : AlphaRule::copied;
  if (positive) weights.exact = false;  // products of colour and opacity are no integers
}

OpacityCopy::OpacityCopy(const Filter2dProblem& problem, std::int64_t channel, double opaque_input,
                         double opaque_output)
    : input_(problem.input),
      output_(problem.output),
      channels_(problem.c),
      channel_(channel),
      as_is_(keeps_opacity(problem, opaque_input, opaque_output)),
      f64_(!is_integer(problem.input) && (problem.input == DataType::f64 || problem.output == DataType::f64)),
      unit_(opacity_unit(problem.input, opaque_input, f64_)),
      opaque_output_(full_opacity(problem.output, opaque_output)) {
  if (problem.border.mode != BorderMode::valid) return;
  down_ = problem.r / 2;
  right_ = problem.s / 2;
}

OpacityCopy::OpacityCopy(const Filter2dTask& task)
    : OpacityCopy(task.problem, task.problem.alpha_channel, 0, task.weights.opaque_output) {
  as_is_ = task.weights.keeps_opacity;
  unit_ = task.weights.opacity_unit;
}

void OpacityCopy::run(const RowWindow& x, std::int64_t p, std::int64_t first, std::int64_t count,
                      std::byte* row) const {
  const std::int64_t from_step = channels_ * size_of(input_), to_step = channels_ * size_of(output_);
  const std::byte* const from =
      x.data + (p + down_ - x.first) * x.stride_bytes + (first + right_) * from_step + channel_ * size_of(input_);
  std::byte* const to = row + first * to_step + channel_ * size_of(output_);
  with_pixel_type(input_, [&](auto input) {
    with_pixel_type(output_, [&](auto output) {
      if (f64_)
        copy_pixels<input(), output()>(from, from_step, to, to_step, count, as_is_, unit_, opaque_output_);
      else
        copy_pixels<input(), output()>(from, from_step, to, to_step, count, as_is_, static_cast<float>(unit_),
                                       static_cast<float>(opaque_output_));
    });
  });
}

}  // namespace omniconv
