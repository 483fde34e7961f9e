// Problems of norm: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/norm.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const NormProblem& problem);
std::string print(const NormProblem& problem);

namespace operations {
const text::Notation<NormProblem>& norm_notation();
}

}  // namespace omniconv
