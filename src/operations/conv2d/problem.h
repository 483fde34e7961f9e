// Problems of conv2d: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/conv2d.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const Conv2dProblem& problem);
std::string print(const Conv2dProblem& problem);

namespace operations {
const text::Notation<Conv2dProblem>& conv2d_notation();
}

}  // namespace omniconv
