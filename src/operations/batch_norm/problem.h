// Problems of batch_norm: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/batch_norm.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const BatchNormProblem& problem);
std::string print(const BatchNormProblem& problem);

namespace operations {
const text::Notation<BatchNormProblem>& batch_norm_notation();
}

}  // namespace omniconv
