// Opacity: what becomes of it, from the weights alone, and the copying of it (docs/arithmetic.md, rule 8).
#pragma once

#include "core/row_window.h"
#include "operations/filter2d/weights.h"

namespace omniconv {

// Fills the fields of `weights` that speak of alpha, the others being there. Throws bad_input where full opacity is not
// a positive number.
void decide_alpha(const Filter2dProblem& problem, const Filter& filter, Weights& weights);

// Opacity, taken from the pixel under the window's anchor (under `valid`, its middle) as it is, or brought to the
// output's full opacity.
class OpacityCopy {
 public:
  // The values of full opacity are those of Filter.
  OpacityCopy(const Filter2dProblem& problem, std::int64_t channel, double opaque_input, double opaque_output);

  explicit OpacityCopy(const Filter2dTask& task);

  // The pixels [first, first + count) of output row p, which begins at `row`; x holds the input row that they read.
  void run(const RowWindow& x, std::int64_t p, std::int64_t first, std::int64_t count, std::byte* row) const;

 private:
  DataType input_, output_;
  std::int64_t channels_, channel_, down_ = 0, right_ = 0;
  bool as_is_, f64_;
  double unit_, opaque_output_;
};

// Full opacity as `type` stores it, unless `given` says otherwise.
double full_opacity(DataType type, double given);
// Whether a copied opacity keeps its stored value.
bool keeps_opacity(const Filter2dProblem& problem, double opaque_input, double opaque_output);

}  // namespace omniconv
