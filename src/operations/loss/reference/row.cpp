#include "operations/loss/reference/row.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/convert.h"

namespace omniconv::reference {
namespace {

double element(DataType type, const std::byte* x, std::int64_t j) {
  return load_element(type, x + j * size_of(type));
}

bool is_class(std::int64_t label, std::int64_t classes) {
  return label >= 0 && label < classes;
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

// The first maximum's own exponential is 1 and is left out, so that no sum of the others vanishes beside it.
SoftmaxRow softmax_row(DataType type, const std::byte* x, std::int64_t classes) {
  SoftmaxRow row;
  row.maximum = -std::numeric_limits<double>::infinity();
  std::int64_t first = 0;
  for (std::int64_t j = 0; j < classes; ++j)
    if (const double value = element(type, x, j); value > row.maximum) row.maximum = value, first = j;
  double spread = 0;
  for (std::int64_t j = 0; j < classes; ++j) {
    const double below = row.maximum - element(type, x, j);
    if (j != first || std::isnan(below)) row.others += std::exp(-below);
    if (below > 0 && std::isfinite(below)) spread += std::exp(-below) * below;
  }
  row.spread = spread / (1 + row.others);
  return row;
}

double SoftmaxRow::probability(double x) const {
  return std::exp(x - maximum) / (1 + others);
}

LossNumber softmax_loss(const SoftmaxRow& row, DataType type, const std::byte* x, std::int64_t classes,
                        std::int64_t label) {
  if (!is_class(label, classes)) return {nan, 0};
  const double value = std::log1p(row.others) + (row.maximum - element(type, x, label));
  return {value, value + row.spread};
}

// Of the label's maximum -(1 - p) is -others / sum, which rounds no difference.
LossNumber softmax_gradient(const SoftmaxRow& row, DataType type, const std::byte* x, std::int64_t classes,
                            std::int64_t label, std::int64_t j, double scale) {
  if (!is_class(label, classes)) return {nan, 0};
  const double at = element(type, x, j), p = row.probability(at), sum = 1 + row.others;
  const double of_exponential = at == row.maximum ? 0 : p * (row.maximum - at);  // 0 of -infinity, whose p is 0
  const double moved = (std::isnan(of_exponential) ? 0 : of_exponential) + p * row.spread;
  if (j != label) return {scale * p, std::abs(scale) * (p + moved)};
  if (at == row.maximum) return {-scale * (row.others / sum), std::abs(scale) * (row.others / sum + row.spread)};
  return {-scale * (1 - p), std::abs(scale) * (1 + moved)};
}

double squared_loss(DataType type, const std::byte* x, const std::byte* t, std::int64_t length) {
  double sum = 0;
  for (std::int64_t j = 0; j < length; ++j) {
    const double difference = element(type, x, j) - element(type, t, j);
    sum += difference * difference;
  }
  return sum / static_cast<double>(length);
}

double squared_gradient(double x, double t, std::int64_t length, double scale) {
  return scale * 2 / static_cast<double>(length) * (x - t);
}

}  // namespace omniconv::reference
