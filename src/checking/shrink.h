// Problems that fail, made small: the least that still fails says most about why.
#pragma once

#include <functional>
#include <vector>

#include "omniconv/problem.h"

namespace omniconv::checking {

// Valid problems that say less: one word of the text left out, or one number left out, 1, half, one
// less, or a smaller one of the text's (channels that are to be a multiple of groups).
std::vector<Problem> simpler(const Problem& problem);

struct ShrinkBudget {
  int problems = 500;  // that are tried
  double seconds = 30;
};

struct Shrunk {
  Problem problem;
  int tried = 0;
};

// Takes whatever step keeps the failure, until none does or the budget is spent.
Shrunk shrink(const Problem& problem, const std::function<bool(const Problem&)>& fails,
              const ShrinkBudget& budget = {});

}  // namespace omniconv::checking
