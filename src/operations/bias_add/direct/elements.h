// Vector code of bias_add on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "omniconv/bias_add.h"

namespace omniconv::kernels {

// y = x + b of so many rows of `columns` elements.
void add_to_rows(DataType type, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t rows,
                 std::int64_t columns);
// y = x + b of so many lines of `inner` elements, of one channel each: the first line is of `channel`.
void add_to_lines(DataType type, const std::byte* x, const std::byte* b, std::byte* y, std::int64_t lines,
                  std::int64_t inner, std::int64_t channel, std::int64_t channels);

// The sum of `count` elements that lie side by side in pieces: the first `first` of them at `dy`, the others in runs of
// `inner`, `stride` elements from one to the next. Four chains of vectors, of `most_chain` additions and three more at
// most, are added up, again and again. float, or double of f64, to `sum`.
constexpr std::int64_t most_chain = 64;
struct Positions {
  std::int64_t first = 0, count = 0, inner = 0, stride = 0;
};
void sum_positions(DataType type, const std::byte* dy, const Positions& positions, std::byte* sum);

// The sums of `columns` columns of so many rows, `stride` elements from one to the next. Chains of `most_rows`
// additions are added up, again and again. Fewer columns than four vectors, which are whole rows then, have a chain for
// each place of a vector, at most `most_few` a column.
constexpr std::int64_t most_rows = 1024, most_few = 64;
void sum_columns(DataType type, const std::byte* dy, std::int64_t rows, std::int64_t columns, std::int64_t stride,
                 std::byte* sums);

}  // namespace omniconv::kernels
