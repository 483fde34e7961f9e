#include "operations/filter2d/vector/row_source.h"

#include <algorithm>
#include <cstring>

#include "core/border_map.h"
#include "core/convert.h"
#include "operations/filter2d/vector/rows.h"

namespace omniconv::kernels {
namespace {

// Image elements [first, last) that all lie left or right of the image.
template <typename Real>
Real* load_outside(const Filter2dTask& task, const std::byte* data, std::int64_t first, std::int64_t last, Real* to) {
  const Filter2dProblem& problem = task.problem;
  const std::int64_t c = problem.c, size = size_of(problem.input);
  std::int64_t column = first >= 0 ? first / c : -((-first + c - 1) / c), ch = first - column * c;
  for (std::int64_t j = first; j < last; ++j) {
    const std::int64_t inside = border_index(problem.border.mode, column, problem.w);
    *to++ = static_cast<Real>(inside < 0 ? task.weights.border_value
                                         : load_element(problem.input, data + (inside * c + ch) * size));
    if (++ch == c) ch = 0, ++column;
  }
  return to;
}

void widen(DataType, const std::byte* from, std::int64_t n, std::uint8_t* to) {
  std::memcpy(to, from, static_cast<std::size_t>(n));
}

}  // namespace

const std::byte* row_data(const Filter2dTask& task, const RowWindow& window, std::int64_t row) {
  if (!window.holds(row)) {
    row = border_index(task.problem.border.mode, row, task.problem.h);
    if (!window.holds(row)) return nullptr;
  }
  return window.data + (row - window.first) * window.stride_bytes;
}

template <typename Real>
void load_row(const Filter2dTask& task, const RowWindow& window, std::int64_t row, std::int64_t first,
              std::int64_t count, Real* to) {
  const Filter2dProblem& problem = task.problem;
  const std::byte* const data = row_data(task, window, row);
  if (data == nullptr) {
    std::fill_n(to, count, static_cast<Real>(task.weights.border_value));
    return;
  }
  const std::int64_t begin = first - task.weights.anchor_x * problem.c, end = begin + count;
  const std::int64_t width = problem.w * problem.c;
  const std::int64_t inside_begin = std::clamp(begin, std::int64_t{0}, width),
                     inside_end = std::clamp(end, std::int64_t{0}, width);
  to = load_outside(task, data, begin, std::min(end, std::int64_t{0}), to);
  widen(problem.input, data + inside_begin * size_of(problem.input), inside_end - inside_begin, to);
  load_outside(task, data, std::max(begin, width), end, to + (inside_end - inside_begin));
}

template void load_row(const Filter2dTask&, const RowWindow&, std::int64_t, std::int64_t, std::int64_t, float*);
template void load_row(const Filter2dTask&, const RowWindow&, std::int64_t, std::int64_t, std::int64_t, double*);
template void load_row(const Filter2dTask&, const RowWindow&, std::int64_t, std::int64_t, std::int64_t, std::uint8_t*);

}  // namespace omniconv::kernels
