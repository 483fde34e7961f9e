// Input rows as chains need them: widened, and continued outside the image by the border.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row_window.h"
#include "operations/filter2d/weights.h"

namespace omniconv::kernels {

// The stored row that stands for `row`; null where the border is a constant, or the row is not there.
const std::byte* row_data(const Filter2dTask& task, const RowWindow& window, std::int64_t row);

// Writes to[0, count): the padded elements [first, first + count) of row `row` (which may lie outside the image).
// Padded element j is image element j - anchor_x * c, so that output element e reads padded elements e + s * c.
// Elements of u8 images may stay as they are.
template <typename Real>
void load_row(const Filter2dTask& task, const RowWindow& window, std::int64_t row, std::int64_t first,
              std::int64_t count, Real* to);

extern template void load_row(const Filter2dTask&, const RowWindow&, std::int64_t, std::int64_t, std::int64_t, float*);
extern template void load_row(const Filter2dTask&, const RowWindow&, std::int64_t, std::int64_t, std::int64_t, double*);
extern template void load_row(const Filter2dTask&, const RowWindow&, std::int64_t, std::int64_t, std::int64_t,
                              std::uint8_t*);

}  // namespace omniconv::kernels
