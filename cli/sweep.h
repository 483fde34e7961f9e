// --sweep: one problem into a family of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "omniconv/problem.h"

namespace omniconv::cli {

// "rs=3:31:+2": these geometry letters together take the values 3, 5, ... 31. "w=64:4096:x2" multiplies instead.
struct Sweep {
  // Of the problem's notation: "rs", "n", "batch"; p, u and d mean both axes and all sides.
  std::string letters;
  std::vector<std::int64_t> values;
};

// Throws naming the part that is wrong.
Sweep parse_sweep(std::string_view text);

// Each problem with each value, sweeps multiplied with each other; throws for a problem that has no such extent or that
// a value makes invalid, and for more problems than anyone waits for.
std::vector<Problem> swept(const std::vector<Problem>& problems, const std::vector<std::string>& sweeps);

}  // namespace omniconv::cli
