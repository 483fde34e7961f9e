// Problems of dropout: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/dropout.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const DropoutProblem& problem);
std::string print(const DropoutProblem& problem);

namespace operations {
const text::Notation<DropoutProblem>& dropout_notation();
}

}  // namespace omniconv
