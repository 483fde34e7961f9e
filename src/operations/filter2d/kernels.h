// Kernels by name (docs/cli.md), and the weights that problems' texts name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/filter2d.h"

namespace omniconv {

inline constexpr std::int64_t largest_kernel_side = 4096;

struct Kernel {
  std::int64_t r = 0, s = 0;
  std::vector<double> weights = {};  // row-major, for correlation
  // Row and column; only ImageMagick's form sets them, and then both.
  std::optional<std::int64_t> anchor_y = {}, anchor_x = {};
  // Empty, or r x s as well: a pair, whose magnitude is taken (omniconv/filter2d.h).
  std::vector<double> second_weights = {};
};

// Throws unless there are 1 to 4096 rows and columns of finite weights, not all zero. `source` begins the message.
void validate(const Kernel& kernel, std::string_view source);

// What --list-kernels shows.
struct KernelDescription {
  std::string_view usage;    // "gaussian:SIZE[,SIGMA]"
  std::string_view meaning;  // one line
};
std::span<const KernelDescription> named_kernels();
// "gaussian:9,1.5", a name and its arguments alone. Throws with the nearest names, or naming the argument and its rule.
Kernel named_kernel(std::string_view text);

// Divided by the sum of the weights; throws when that is zero, or no larger than the rounding of its additions, and for
// a pair.
void normalize(Kernel& kernel);

// The kernel that does to the stored pixels of an image what `kernel` does to the upright picture: turned as Exif
// orientation 1 .. 8 turns the picture back. Its anchor is set.
Kernel turned_to_stored(const Kernel& kernel, int orientation);

// Weights of the kind that a problem's text names; the same on every platform for the same seed, r and s.
//   random   full rank, no integers, both signs (where there are two weights), a sum of magnitudes of 0.9 and a sum of
//            about 0.7, so that few results of integer images saturate
//   integer  whole numbers from -4 to 4, full rank, not all equal (where there are two weights)
//   rank1    column times row, 12 significant bits each, so that every product is exact in fp32; a sum of magnitudes
//            from 0.5 to 1
//   equal    1 / (r s)
// or a named kernel, which throws when it is not r x s.
Kernel kernel_for(const Filter2dProblem& problem, std::uint64_t seed);
// That kernel as a filter for checks, with a bias that centres integer results (random_image.h).
Filter filter_for(const Filter2dProblem& problem, std::uint64_t seed);

}  // namespace omniconv
