#include "operations/conv2d/fft/fft.h"

#include <algorithm>
#include <cmath>

#include "core/checked.h"

namespace omniconv::operations {

FftShape::FftShape(const Conv2dProblem& problem, std::int64_t of_side)
    : side(of_side), columns(side / 2 + 1), bins(side * columns) {
  const Conv2dShape g(problem);
  const bool to_data = problem.pass == Pass::backward_data;
  of_filter = problem.pass == Pass::backward_filter;
  n = g.n, groups = g.groups;
  source = to_data ? g.k_group : g.c_group;
  target = to_data ? g.c_group : g.k_group;
  source_h = to_data ? g.p : g.h, source_w = to_data ? g.q : g.w;
  target_h = to_data ? g.h : g.p, target_w = to_data ? g.w : g.q;
  top = to_data ? g.r - 1 - g.pad_top : g.pad_top;
  left = to_data ? g.s - 1 - g.pad_left : g.pad_left;
  taps_h = g.r, taps_w = g.s;
  tile_h = side - g.r + 1, tile_w = side - g.s + 1;
  tile_rows = divide_up(target_h, tile_h), tile_columns = divide_up(target_w, tile_w);
  tiles = n * tile_rows * tile_columns;
  turned = to_data != g.flip;
}

double fft_roundings(std::int64_t side) {
  // A level of sums is one; a stage's twiddles, of all stages but the last, are rounded (1), multiplied and added
  // (1 + sqrt(2)), which 3.5 holds with what is of higher order.
  double levels = 0, stages = 0;
  for (std::int64_t n = side; n > 1; ++stages) {
    const std::int64_t radix = n % 4 == 0 ? 4 : 2;
    levels += radix / 2;
    n /= radix;
  }
  return levels + 3.5 * (stages - 1);
}

ErrorBound fft_bound(const Conv2dProblem& problem, const FftShape& shape) {
  // Three transforms of two axes, with a level of sums that takes rows apart or together, then the product's own
  // rounding, the scale, bias and what the output held.
  const double transforms = 3 * (2 * fft_roundings(shape.side) + 1);
  ErrorBound bound = conv2d_bound(problem, 2 * static_cast<double>(shape.of_filter ? shape.tiles : shape.source),
                                  (transforms / std::sqrt(2) + 4) / 2);
  const auto read = [&](std::int64_t extent) { return static_cast<double>(std::min(extent, shape.side)); };
  bound.amplification = std::sqrt(2 * read(shape.source_h) * read(shape.source_w));
  bound.norm = shape.of_filter ? "sum(sum|dy| * max|x| of the tile)" : "sum(sum|w| * max|x| of the tile)";
  bound.tile = {std::min(shape.tile_h, shape.target_h), std::min(shape.tile_w, shape.target_w)};
  bound.rounds_integers = true;
  return bound;
}

const char* fft_refusal(const Conv2dProblem& problem) {
  if (problem.stride_h != 1 || problem.stride_w != 1) return "serves strides of 1: transforms compute every output";
  if (problem.dilation_h != 1 || problem.dilation_w != 1) return "serves filters without dilation";
  if (std::max(problem.r, problem.s) > fft_sides.back()) return "serves filters of up to 128 x 128";
  constexpr std::int64_t most_channels = std::int64_t{1} << 20;
  if (std::max(problem.c, problem.k) > most_channels) return "serves up to 2^20 channels";
  return "";
}

}  // namespace omniconv::operations
