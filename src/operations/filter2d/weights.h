// What follows from a filter's weights alone: their rounding, their form, and with these the bits of the result
// (docs/arithmetic.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "omniconv/filter2d.h"
#include "omniconv/problem.h"

namespace omniconv {

// equal: the sum of the pixels, times the weight. rank_one: a chain along each row of the kernel, then one down the
// column. general: one chain over the taps in row-major order.
enum class WeightForm : std::uint8_t { equal, rank_one, general };
std::string_view name(WeightForm form);

// What becomes of the problem's alpha channel (docs/arithmetic.md, rule 8). premultiplied: colours are multiplied by
// opacity as they enter the sums, and the sums divided by it; copied: the weights sum to zero or less, so that colours
// are filtered plainly and opacity stays.
enum class AlphaRule : std::uint8_t { none, premultiplied, copied };

// A filter made ready for solvers: mirrored if the problem says so, rounded to the accumulating type.
struct Weights {
  std::int64_t r = 0, s = 0;
  std::int64_t anchor_y = 0, anchor_x = 0;  // 0 under `valid`, where the output starts at the first whole window
  DataType accumulate = DataType::f32;      // f64 only where a floating image is f64
  std::vector<double> values;               // r x s, row-major
  WeightForm form = WeightForm::general;
  std::vector<double> column, row;  // r and s factors, when rank one: values ~ column * row
  // Every product and partial sum is exact in fp32, in any order, for every image of the input type: then any order of
  // addition gives the promised bits.
  bool exact = false;
  double scale = 1, bias = 0;
  double border_value = 0;  // rounded and saturated to the input type
  AlphaRule alpha_rule = AlphaRule::none;
  double opacity_unit = 1;    // opacity enters sums as a fraction: its stored value times this
  double opaque_sum = 1;      // what opacity sums to where all is opaque: the weights' own sum
  double opaque_output = 1;   // full opacity as the output stores it
  bool keeps_opacity = true;  // full opacity is stored alike in input and output: copies keep the stored value
};

// Of the filter's first weights. Throws bad_input for a wrong count, a non-finite weight, all weights zero, or an
// anchor outside the kernel.
Weights analyse(const Filter2dProblem& problem, const Filter& filter);

// The promise of docs/arithmetic.md: the result is defined to the bit, rather than bounded.
bool is_bit_exact(const Filter2dProblem& problem);

// The problem and its weights: what a solver is asked.
struct Filter2dTask {
  Filter2dProblem problem;
  Weights weights;
  std::optional<Weights> second = {};  // of y, where the result is the magnitude of a pair
};

// Throws as analyse does, for each kernel of the filter.
Filter2dTask task_for(const Filter2dProblem& problem, const Filter& filter);

// The input rows that a run of output rows reads: see input_rows_for in omniconv/filter2d.h.
RowSpan input_rows_for(const Filter2dTask& task, std::int64_t output_first, std::int64_t output_rows);

// The largest magnitude that a sum of the weights' products with pixels of an integer type can have.
double largest_sum(const Weights& weights, DataType input);

// The largest power of two that divides every value; 1 for zeros alone.
double common_unit(const std::vector<double>& values);

// True when sums of r * s pixels of the input type are exact in fp32 chains.
bool pixel_sums_fit_f32(const Filter2dTask& task);

}  // namespace omniconv
