// Problems of pool2d: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/pool2d.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const Pool2dProblem& problem);
std::string print(const Pool2dProblem& problem);

namespace operations {
const text::Notation<Pool2dProblem>& pool2d_notation();
}

}  // namespace omniconv
