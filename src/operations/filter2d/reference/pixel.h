// One input pixel of a reference: inside the image, or what the border puts outside.
#pragma once

#include "core/border_map.h"
#include "core/convert.h"
#include "operations/filter2d/reference/filter2d.h"

namespace omniconv::reference {

inline double pixel(const Filter2dTask& task, RowWindow x, std::int64_t row, std::int64_t column, std::int64_t ch) {
  const Filter2dProblem& problem = task.problem;
  const bool given = x.holds(row);
  const std::int64_t h = given ? row : border_index(problem.border.mode, row, problem.h);
  const std::int64_t w = border_index(problem.border.mode, column, problem.w);
  if ((!given && h < 0) || w < 0) return task.weights.border_value;
  return load_element(problem.input,
                      x.data + (h - x.first) * x.stride_bytes + (w * problem.c + ch) * size_of(problem.input));
}

}  // namespace omniconv::reference
