// Winograd's minimal filtering F(outputs x outputs, taps x taps): its matrices, what they do to errors, and how its
// tiles lie. README.md derives all of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shape.h"

namespace omniconv::operations {

// y = output * ((filter * g) . (input * d)) along one axis: g has `taps` numbers, y `outputs`, d as many as there are
// points. Row 0 is of the point 0, rows 2i - 1 and 2i of a point and its negative, the last of the point at infinity.
template <int outputs, int taps>
struct WinogradMatrices {
  static constexpr int points = outputs + taps - 1;
  static_assert(points == 4 || points == 6);

  template <int rows, int columns>
  using Matrix = std::array<std::array<double, static_cast<std::size_t>(columns)>, static_cast<std::size_t>(rows)>;

  Matrix<points, points> input = {};  // numbers that fp32 holds
  Matrix<points, taps> powers = {};   // filter[e][j] = powers[e][j] / divisors[e]
  std::array<double, static_cast<std::size_t>(points)> divisors = {};
  Matrix<points, taps> filter = {};
  Matrix<outputs, points> output = {};

  static constexpr double point(std::size_t e) {
    constexpr double of_four[] = {0, 1, -1}, of_six[] = {0, 0.5, -0.5, 2, -2};
    return points == 4 ? of_four[e] : of_six[e];
  }

  constexpr WinogradMatrices() {
    constexpr std::size_t n = points, infinity = n - 1;
    for (std::size_t e = 0; e < n; ++e) {
      // The product of (x - q) over the other points, by its coefficients; at infinity over all.
      input[e][0] = 1;
      divisors[e] = 1;
      for (std::size_t q = 0; q < infinity; ++q) {
        if (q == e) continue;
        for (std::size_t i = n - 1; i > 0; --i) input[e][i] = input[e][i - 1] - point(q) * input[e][i];
        input[e][0] *= -point(q);
        if (e != infinity) divisors[e] *= point(e) - point(q);
      }
      double power = 1;
      for (std::size_t j = 0; j < static_cast<std::size_t>(taps); ++j) {
        powers[e][j] = e == infinity ? (j + 1 == static_cast<std::size_t>(taps) ? 1 : 0) : power;
        filter[e][j] = powers[e][j] / divisors[e];
        power *= e == infinity ? 0 : point(e);
      }
      power = 1;
      for (std::size_t i = 0; i < static_cast<std::size_t>(outputs); ++i) {
        output[i][e] = e == infinity ? (i + 1 == static_cast<std::size_t>(outputs) ? 1 : 0) : power;
        power *= e == infinity ? 0 : point(e);
      }
    }
  }
};

template <int outputs, int taps>
inline constexpr WinogradMatrices<outputs, taps> winograd_matrices{};

// A form, chosen at run time. Those that there are: (2, 3), (4, 3), (2, 5); for the gradient of filters, whose outputs
// are the filter's taps and whose taps a tile of dy, (3, 4), (3, 2).
struct WinogradForm {
  int outputs, taps;

  int points() const { return outputs + taps - 1; }
  int products() const { return points() * points(); }  // of a tile and a filter
  // Pixels of a tile of y, along each axis; of x backward to the data.
  int tile(Pass pass) const { return pass == Pass::backward_filter ? taps : outputs; }
  bool operator==(const WinogradForm& other) const = default;
};

// Both axes': an error of one rounding in a product's or a sum's way is no larger than amplification / 2^24 (2^53)
// times the norm; and the roundings in the way through the three transforms, but not through the sum over channels.
struct WinogradError {
  double amplification, roundings;
  // Integers are summed exactly while so many times the norm is below 2^24; 0 where they are not.
  double integer_scale;
};
WinogradError winograd_error(WinogradForm form);

// The bound for chains over so many channels, in the norm
//   sum over channels of (sum of |w| over the taps) * (largest |x| that the output's tile reads);
// of the gradient of filters for chains over so many tiles, in the norm
//   sum over all tiles of (sum of |dy| over the tile) * (largest |x| that it reads).
ErrorBound winograd_bound(const Conv2dProblem& problem, WinogradForm form, double chain);

// A pass forward, or backward to the data, which is one forward with turned filters: of each group, images of `source`
// channels become images of `target` channels. Backward to the filter both are read, x and dy.
struct WinogradShape {
  WinogradShape(const Conv2dProblem& problem, WinogradForm form);

  std::int64_t source, target;  // channels of a group
  std::int64_t source_h, source_w, target_h, target_w;
  std::int64_t top, left;  // target (0, 0) reads source (-top, -left) and on; negative where a border is not read
  std::int64_t tile_rows, tile_columns, tiles;  // of an image, and of all images
  bool turned;                                  // taps are read from the last to the first
};

// Of two forms, by offer_of(form, limit of the workspace): the smaller where it is the cheaper, or where the larger
// passes a limit of the request; else a limit changes no results. Where both pass that of the workspace, the one that
// asks for less says how much.
template <typename OfferOf>
Answer offer_of_cheaper(WinogradForm larger, WinogradForm smaller, const SolverOptions& request,
                        const OfferOf& offer_of) {
  const std::int64_t limit = request.max_workspace_bytes;
  const Answer of_larger = offer_of(larger, limit), of_smaller = offer_of(smaller, limit);
  const auto keeps_limits = [&](const Answer& answer) {
    const Offer* const offer = answer.offer();
    return offer != nullptr && offer->bound.amplification <= request.max_error &&
           (limit < 0 || offer->workspace_bytes <= limit);
  };
  if (!keeps_limits(of_larger)) {
    const Offer *const larger_offer = of_larger.offer(), *const smaller_offer = of_smaller.offer();
    const bool asks_less = larger_offer != nullptr && smaller_offer != nullptr &&
                           larger_offer->bound.amplification <= request.max_error &&
                           larger_offer->workspace_bytes <= smaller_offer->workspace_bytes;
    return smaller_offer == nullptr || asks_less ? of_larger : of_smaller;
  }
  if (!keeps_limits(of_smaller)) return of_larger;
  const auto cost = [&](WinogradForm form, const Answer& limited) {
    const Answer answer = limit < 0 ? limited : offer_of(form, -1);
    return answer.offer() != nullptr ? answer.offer()->cost.multiply_adds : std::numeric_limits<double>::infinity();
  };
  return cost(smaller, of_smaller) < cost(larger, of_larger) ? of_smaller : of_larger;
}

// Why the problem has no such form; empty where it has.
const char* winograd_refusal(const Conv2dProblem& problem);

}  // namespace omniconv::operations
