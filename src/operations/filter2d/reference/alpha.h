// Rule 8 of docs/arithmetic.md for both references: tasks whose weights name a rule for alpha.
#pragma once

#include "operations/filter2d/reference/filter2d.h"

namespace omniconv::reference {

void definition_with_alpha(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch,
                           std::byte* y);
DoubleResult double_with_alpha(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch);

}  // namespace omniconv::reference
