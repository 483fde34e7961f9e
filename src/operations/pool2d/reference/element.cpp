#include "operations/pool2d/reference/element.h"

#include <cmath>

#include "core/convert.h"

namespace omniconv::reference {
namespace {

// Calls take(r, s, elements before x) for what of a window is inside the image, in row-major order.
template <typename Take>
void for_each_element(const Pool2dShape& shape, const Pool2dPlace& window, const Take& take) {
  const PoolRange rows = shape.rows.taps_of(window.row), columns = shape.columns.taps_of(window.column);
  for (std::int64_t r = rows.first; r < rows.end; ++r)
    for (std::int64_t s = columns.first; s < columns.end; ++s)
      take(r, s,
           shape.x_at(window.n, window.c, shape.rows.begin(window.row) + r, shape.columns.begin(window.column) + s));
}

}  // namespace

Pool2dPlace pool2d_place(const Pool2dShape& shape, std::int64_t index, std::int64_t rows, std::int64_t columns) {
  const auto take = [&](std::int64_t extent) {
    const std::int64_t rest = index % extent;
    index /= extent;
    return rest;
  };
  Pool2dPlace place{};
  if (shape.nhwc) {
    place.c = take(shape.c);
    place.column = take(columns);
    place.row = take(rows);
  } else {
    place.column = take(columns);
    place.row = take(rows);
    place.c = take(shape.c);
  }
  place.n = index;
  return place;
}

Pool2dMaximum pool2d_maximum(const Pool2dShape& shape, DataType type, const std::byte* x, const Pool2dPlace& window) {
  Pool2dMaximum maximum{.index = -1};
  double best = 0;
  for_each_element(shape, window, [&](std::int64_t r, std::int64_t s, std::int64_t at) {
    const double value = load_element(type, x + at * size_of(type));
    const bool is_greater = value > best, is_first_nan = std::isnan(value) && !std::isnan(best);
    if (maximum.index >= 0 && !is_greater && !is_first_nan) return;
    best = value;
    maximum = {at, static_cast<std::int32_t>(r * shape.columns.taps + s)};
  });
  return maximum;
}

DoubleSum pool2d_average(const Pool2dShape& shape, DataType type, const std::byte* x, const Pool2dPlace& window) {
  DoubleSum sum;
  for_each_element(shape, window, [&](std::int64_t, std::int64_t, std::int64_t at) {
    const double value = load_element(type, x + at * size_of(type));
    sum.value += value;
    sum.magnitude += std::fabs(value);
  });
  const auto divisor = static_cast<double>(shape.divisor(window.row, window.column));
  return {sum.value / divisor, sum.magnitude / divisor};
}

DoubleSum pool2d_gradient(const Pool2dShape& shape, DataType type, const std::byte* dy, const std::byte* indices,
                          const Pool2dPlace& element) {
  const PoolRange rows = shape.rows.windows_of(element.row), columns = shape.columns.windows_of(element.column);
  DoubleSum sum;
  for (std::int64_t p = rows.first; p < rows.end; ++p)
    for (std::int64_t q = columns.first; q < columns.end; ++q) {
      const std::int64_t at = shape.y_at(element.n, element.c, p, q);
      const std::int64_t r = element.row - shape.rows.begin(p), s = element.column - shape.columns.begin(q);
      double value = load_element(type, dy + at * size_of(type));
      if (indices == nullptr)
        value /= static_cast<double>(shape.divisor(p, q));
      else if (load_element(DataType::s32, indices + at * 4) != static_cast<double>(r * shape.columns.taps + s))
        continue;
      sum.value += value;
      sum.magnitude += std::fabs(value);
    }
  return sum;
}

}  // namespace omniconv::reference
