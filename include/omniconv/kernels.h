// Kernels by name (docs/kernels.md), as weights for a filter:
//
//   const Kernel blur = named_kernel("gaussian:9,1.5");
//   const Filter2dPlan plan(context, {.h = 480, .w = 640, .c = 3, .r = blur.r, .s = blur.s}, filter_of(blur));
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "omniconv/filter2d.h"

namespace omniconv {

struct Kernel {
  std::int64_t r = 0, s = 0;
  std::vector<double> weights = {};  // row-major, for correlation
  // Row and column; no named kernel sets them.
  std::optional<std::int64_t> anchor_y = {}, anchor_x = {};
  // Empty, or r x s as well: a pair, whose magnitude is taken (omniconv/filter2d.h).
  std::vector<double> second_weights = {};
};

// A name and its arguments, "gaussian:9,1.5". Throws with the nearest names, or naming the argument and its rule.
Kernel named_kernel(std::string_view text);

struct KernelDescription {
  std::string_view usage;    // "gaussian:SIZE[,SIGMA]"
  std::string_view meaning;  // one line
};
// All that there are.
std::span<const KernelDescription> named_kernels();

// Its weights and its anchor, with a scale of 1 and no bias.
Filter filter_of(const Kernel& kernel);

}  // namespace omniconv
