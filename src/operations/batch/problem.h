// Problems of batch: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/batch.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const BatchProblem& problem);
std::string print(const BatchProblem& problem);

namespace operations {
const text::Notation<BatchProblem>& batch_notation();
}

}  // namespace omniconv
