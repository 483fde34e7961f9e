#include <cmath>
#include <limits>

#include "operations/filter2d/reference/alpha.h"
#include "operations/filter2d/reference/sum_of_taps.h"

namespace omniconv::reference {
namespace {

// Reads pixels under the window of one output element.
struct Window {
  const Filter2dTask& task;
  RowWindow x;
  std::int64_t p, q;

  double operator()(std::int64_t r, std::int64_t s, std::int64_t ch) const {
    return pixel(task, x, p + r - task.weights.anchor_y, q + s - task.weights.anchor_x, ch);
  }
};

// Rules 2 to 5 over colours times opacity, which are no integers: equal weights are chains of ones along the rows, then
// down.
template <typename Real, typename Tap>
Real sum_of_shares(const Weights& weights, const Tap& tap) {
  if (weights.form != WeightForm::equal) return sum_of_taps<Real>(weights, tap);
  Real down = 0;
  for (std::int64_t r = 0; r < weights.r; ++r) {
    Real along = 0;
    for (std::int64_t s = 0; s < weights.s; ++s) along += tap(r, s);
    down += along;
  }
  return down * static_cast<Real>(weights.values.front());
}

template <typename Real>
Real premultiplied(const Window& window, std::int64_t ch) {
  const Weights& weights = window.task.weights;
  const std::int64_t alpha = window.task.problem.alpha_channel;
  const auto opacity = [&](std::int64_t r, std::int64_t s) {
    return static_cast<Real>(window(r, s, alpha)) * static_cast<Real>(weights.opacity_unit);
  };
  const Real mean = sum_of_shares<Real>(weights, opacity) / static_cast<Real>(weights.opaque_sum);
  if (ch == alpha) return mean * static_cast<Real>(weights.opaque_output);
  const Real shares = sum_of_shares<Real>(
      weights, [&](std::int64_t r, std::int64_t s) { return static_cast<Real>(window(r, s, ch)) * opacity(r, s); });
  const Real color = mean <= 0 ? 0 : shares / mean;
  return std::fma(static_cast<Real>(weights.scale), color, static_cast<Real>(weights.bias));
}

template <typename Real>
Real copied(const Window& window, std::int64_t ch) {
  const Filter2dTask& task = window.task;
  const Weights& weights = task.weights;
  if (ch != task.problem.alpha_channel) {
    const Real sum = sum_of_taps<Real>(weights, [&](std::int64_t r, std::int64_t s) { return window(r, s, ch); });
    return std::fma(static_cast<Real>(weights.scale), sum, static_cast<Real>(weights.bias));
  }
  const bool valid = task.problem.border.mode == BorderMode::valid;
  const double stored =
      valid ? window(weights.r / 2, weights.s / 2, ch) : window(weights.anchor_y, weights.anchor_x, ch);
  return static_cast<Real>(stored) * static_cast<Real>(weights.opacity_unit) * static_cast<Real>(weights.opaque_output);
}

double middle_opacity(const Window& window) {
  const Weights& weights = window.task.weights;
  const bool valid = window.task.problem.border.mode == BorderMode::valid;
  return window(valid ? weights.r / 2 : weights.anchor_y, valid ? weights.s / 2 : weights.anchor_x,
                window.task.problem.alpha_channel);
}

// sum w * x, and sum |w * x|.
struct Sum {
  double value = 0, magnitude = 0;
  void add(double term) {
    value += term;
    magnitude += std::fabs(term);
  }
  double condition() const {
    return magnitude == 0 ? 0 : value == 0 ? std::numeric_limits<double>::infinity() : magnitude / std::fabs(value);
  }
};

}  // namespace

void definition_with_alpha(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch,
                           std::byte* y) {
  const Window window{task, x, p, q};
  const DataType type = task.problem.output;
  const bool f64 = task.weights.accumulate == DataType::f64;
  if (task.weights.alpha_rule == AlphaRule::premultiplied) {
    if (f64) return store_element(type, premultiplied<double>(window, ch), y);
    return store_element(type, premultiplied<float>(window, ch), y);
  }
  if (ch == task.problem.alpha_channel && task.weights.keeps_opacity)
    return store_element(type, middle_opacity(window), y);
  if (f64) return store_element(type, copied<double>(window, ch), y);
  store_element(type, copied<float>(window, ch), y);
}

// The mean opacity is D / W, a colour N * W / D, for the sums N of colour times opacity, D of opacity and W of the
// weights. Errors n, d and w of these change N * W / D by (n W + N w + n w - d N W / D) / (D + d).
DoubleResult double_with_alpha(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch) {
  const Weights& weights = task.weights;
  const Window window{task, x, p, q};
  const std::int64_t alpha = task.problem.alpha_channel;
  if (weights.alpha_rule == AlphaRule::copied && ch == alpha) {
    const double value = weights.keeps_opacity ? middle_opacity(window)
                                               : middle_opacity(window) * weights.opacity_unit * weights.opaque_output;
    return {value, std::fabs(value)};
  }
  Sum shares, opacities, ones;
  for (std::int64_t r = 0; r < weights.r; ++r)
    for (std::int64_t s = 0; s < weights.s; ++s) {
      const double w = weights.values[static_cast<std::size_t>(r * weights.s + s)];
      const double opacity =
          weights.alpha_rule == AlphaRule::premultiplied ? window(r, s, alpha) * weights.opacity_unit : 1;
      shares.add(w * window(r, s, ch) * opacity);
      opacities.add(w * opacity);
      ones.add(w);
    }
  const double scale = weights.scale, bias = weights.bias;
  if (weights.alpha_rule == AlphaRule::copied)
    return {scale * shares.value + bias, std::fabs(scale) * shares.magnitude + std::fabs(bias)};
  const double mean = opacities.value / ones.value;
  if (ch == alpha) {
    const double magnitude = opacities.magnitude / ones.value + std::fabs(mean) * ones.condition();
    return {mean * weights.opaque_output, magnitude * weights.opaque_output, ones.condition()};
  }
  const double condition = opacities.condition() + ones.condition();
  if (mean <= 0) return {bias, std::fabs(bias), condition};
  const double color = shares.value / mean;
  return {scale * color + bias,
          std::fabs(scale) * (shares.magnitude / mean + std::fabs(color) * condition) + std::fabs(bias), condition};
}

}  // namespace omniconv::reference
