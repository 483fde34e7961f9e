// The two references of filter2d: scalar loops that read like the formula and are never optimised.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/row_window.h"
#include "operations/filter2d/weights.h"

namespace omniconv::reference {

// `definition`: the rule of docs/arithmetic.md, literally, with scalar fused multiply-adds in the accumulating type.
// Writes one stored output element y[p, q, ch].
void definition_element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch,
                        std::byte* y);

// `double`: the sum (of a pair, the magnitude of both sums) in double precision before any conversion, and |scale| *
// sum |x * w| + |bias|, in which error bounds are stated; of a pair, with the magnitude of both such sums.
// Where sums are divided by others (premultiplied alpha), an error of e * magnitude in the sums becomes at most
// e * magnitude / (1 - e * condition), and nothing can be said where e * condition reaches 1.
struct DoubleResult {
  double value = 0, magnitude = 0, condition = 0;
};
DoubleResult double_element(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch);

}  // namespace omniconv::reference
