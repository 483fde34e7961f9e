// The factors: two steps of elimination, their pivots chosen so that the products do not cancel (README.md).
#include <algorithm>
#include <cmath>
#include <limits>

#include "operations/filter2d/rank_two/rank_two.h"

namespace omniconv::operations {
namespace {

using Index = std::int64_t;

std::size_t at(Index i, Index j, Index columns) {
  return static_cast<std::size_t>(i * columns + j);
}

struct Product {
  std::vector<double> column, row;
};

double round_to(DataType type, double value) {
  return type == DataType::f64 ? value : static_cast<double>(static_cast<float>(value));
}

// Rows whose magnitudes sum to at most 1, so that sums along rows overflow no earlier than pixels do; by a power of
// two, which rounds nothing.
void round_product(DataType type, Product& product) {
  double sum = 0;
  for (const double value : product.row) sum += std::fabs(value);
  if (!std::isnormal(sum)) return;
  const int exponent = std::ilogb(sum) + 1;
  for (double& value : product.column) value = round_to(type, std::ldexp(value, exponent));
  for (double& value : product.row) value = round_to(type, std::ldexp(value, -exponent));
}

// The cross of row p and column q, which it reproduces: column q times row p, over the element where they meet.
Product cross(const Weights& weights, const std::vector<double>& values, Index p, Index q) {
  Product product;
  const double pivot = values[at(p, q, weights.s)];
  for (Index i = 0; i < weights.r; ++i) product.column.push_back(values[at(i, q, weights.s)]);
  for (Index j = 0; j < weights.s; ++j) product.row.push_back(values[at(p, j, weights.s)] / pivot);
  round_product(weights.accumulate, product);
  return product;
}

std::size_t largest_of(const std::vector<double>& values) {
  const auto larger = [](double a, double b) { return std::fabs(a) < std::fabs(b); };
  return static_cast<std::size_t>(std::max_element(values.begin(), values.end(), larger) - values.begin());
}

// What the products add up to at a tap, beside its weight.
struct Tap {
  double magnitude, difference;
};

// The difference is rounded twice: what that may hide is added.
Tap compare(double w, double first_column, double first_row, double second_column, double second_row) {
  const double rest = std::fma(second_column, second_row, -w);
  const double difference = std::fma(first_column, first_row, rest);
  return {std::fabs(first_column * first_row) + std::fabs(second_column * second_row),
          std::fabs(difference) + 0x1p-53 * (std::fabs(rest) + std::fabs(difference))};
}

// Factors that overflow give what is no number: as bad as can be.
double worse(double a, double b) {
  return std::isnan(b) ? std::numeric_limits<double>::infinity() : std::max(a, b);
}

// Fills in how well the factors do. Taps below the normal range of the accumulating type are outside the analysis.
void judge(const Weights& weights, const Product& first, const Product& second, TwoProducts& result) {
  const bool f64 = weights.accumulate == DataType::f64;
  const double epsilon = f64 ? 0x1p-52 : 0x1p-23, normal = f64 ? 0x1p-1022 : 0x1p-126;
  for (Index i = 0; i < weights.r; ++i)
    for (Index j = 0; j < weights.s; ++j) {
      const double w = weights.values[at(i, j, weights.s)];
      const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
      const Tap tap = compare(w, first.column[row], first.row[column], second.column[row], second.row[column]);
      result.difference = worse(result.difference, tap.difference / (epsilon * (tap.magnitude + normal)));
      if (!(tap.magnitude <= normal)) result.amplification = worse(result.amplification, tap.magnitude / std::fabs(w));
    }
}

// Two crosses: the first through (p, q), the second through the largest element of what remains.
std::optional<TwoProducts> eliminate(const Weights& weights, Index p, Index q) {
  if (weights.values[at(p, q, weights.s)] == 0) return {};
  const Product first = cross(weights, weights.values, p, q);
  std::vector<double> rest(weights.values.size());
  for (Index i = 0; i < weights.r; ++i)
    for (Index j = 0; j < weights.s; ++j)
      rest[at(i, j, weights.s)] = std::fma(-first.column[static_cast<std::size_t>(i)],
                                           first.row[static_cast<std::size_t>(j)], weights.values[at(i, j, weights.s)]);
  const std::size_t pivot = largest_of(rest);
  if (!std::isnormal(rest[pivot])) return {};
  const Index second_p = static_cast<Index>(pivot) / weights.s, second_q = static_cast<Index>(pivot) % weights.s;
  const Product second = cross(weights, rest, second_p, second_q);

  TwoProducts result;
  judge(weights, first, second, result);
  result.factors.count = 2;
  for (std::size_t i = 0; i < first.column.size(); ++i)
    result.factors.columns.insert(result.factors.columns.end(), {first.column[i], second.column[i]});
  result.factors.rows = first.row;
  result.factors.rows.insert(result.factors.rows.end(), second.row.begin(), second.row.end());
  return result;
}

}  // namespace

std::optional<TwoProducts> two_products(const Weights& weights, double enough) {
  const auto largest = static_cast<Index>(largest_of(weights.values));
  std::optional<TwoProducts> best = eliminate(weights, largest / weights.s, largest % weights.s);
  // More than two products leave far more than rounding does, whatever the pivot.
  constexpr double hopeless = 1024;
  if (!best || !(best->difference < hopeless)) return {};
  const auto covered = [](const TwoProducts& found) { return found.difference <= largest_difference; };
  if (covered(*best) && best->amplification <= enough) return best;
  if (!covered(*best)) best.reset();
  constexpr Index most_taps = 128 * 128;  // the search takes some hundred times as many steps
  if (weights.r * weights.s > most_taps) return best;
  constexpr Index tried = 12;  // rows and columns, evenly spread
  const Index rows = std::min(weights.r, tried), columns = std::min(weights.s, tried);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) {
      std::optional<TwoProducts> found = eliminate(weights, i * (weights.r - 1) / std::max<Index>(rows - 1, 1),
                                                   j * (weights.s - 1) / std::max<Index>(columns - 1, 1));
      if (!found || !covered(*found)) continue;
      if (found->amplification <= enough) return found;
      if (!best || found->amplification < best->amplification) best = std::move(found);
    }
  return best;
}

}  // namespace omniconv::operations
