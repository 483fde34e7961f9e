// Kernels by name, from a file, or literal (docs/cli.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/filter2d.h"

namespace omniconv::image {

struct Kernel {
  std::int64_t r = 0, s = 0;
  std::vector<double> weights;  // row-major, for correlation
};

// What --list-kernels shows.
struct KernelDescription {
  std::string_view usage;    // "gaussian:SIZE[,SIGMA]"
  std::string_view meaning;  // one line
};
std::span<const KernelDescription> named_kernels();

// "gaussian:9,1.5", "@file" or "3x3: 0,-1,0, ...". Throws bad_input with file, line and column where there are any.
Kernel parse_kernel(std::string_view text);
// The text of a kernel file (matrix, CSV, ImageMagick form) or the bytes of a .npy array; `source` names it in errors.
Kernel parse_kernel_file(std::string_view content, std::string_view source);

// Divided by the sum of the weights; throws when that is zero.
void normalize(Kernel& kernel);

// Weights of the kind that a problem's text names: random, integer, rank1, equal, or a named kernel. Same seed, same
// weights. Throws when a named kernel is not r x s.
Kernel kernel_for(const Filter2dProblem& problem, std::uint64_t seed);

}  // namespace omniconv::image
