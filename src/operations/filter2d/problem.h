// Problems of filter2d: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/filter2d.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const Filter2dProblem& problem);
std::string print(const Filter2dProblem& problem);

namespace operations {
const text::Notation<Filter2dProblem>& filter2d_notation();
Filter2dProblem read_filter2d(const text::Words& line, text::Completeness completeness);
}  // namespace operations

}  // namespace omniconv
