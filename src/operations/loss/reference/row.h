// The reference of loss: a row in double precision, as the formulas say.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/loss.h"

namespace omniconv::reference {

// A row of logits. The sum of its exponentials is 1 + others, in units of that of the maximum.
struct SoftmaxRow {
  double maximum = 0;
  double others = 0;  // the sum over all j but the first maximum of exp(x[j] - maximum)
  double spread = 0;  // the sum over all j of p[j] * (maximum - x[j]), p the probabilities

  // exp(x - maximum) over the sum of all.
  double probability(double x) const;
};
SoftmaxRow softmax_row(DataType type, const std::byte* x, std::int64_t classes);

// A result, and the norm of its error's bound: README.md of loss/direct.
struct LossNumber {
  double value = 0, norm = 0;
};

// y of a row whose label is given; NaN where it is none.
LossNumber softmax_loss(const SoftmaxRow& row, DataType type, const std::byte* x, std::int64_t classes,
                        std::int64_t label);
// dx of the row's element j, by `scale`.
LossNumber softmax_gradient(const SoftmaxRow& row, DataType type, const std::byte* x, std::int64_t classes,
                            std::int64_t label, std::int64_t j, double scale);

double squared_loss(DataType type, const std::byte* x, const std::byte* t, std::int64_t length);
double squared_gradient(double x, double t, std::int64_t length, double scale);

}  // namespace omniconv::reference
