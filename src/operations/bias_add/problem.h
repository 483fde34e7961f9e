// Problems of bias_add: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/bias_add.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const BiasAddProblem& problem);
std::string print(const BiasAddProblem& problem);

namespace operations {
const text::Notation<BiasAddProblem>& bias_add_notation();
}

}  // namespace omniconv
