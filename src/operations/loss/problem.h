// Problems of loss: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/loss.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const LossProblem& problem);
std::string print(const LossProblem& problem);

namespace operations {
const text::Notation<LossProblem>& loss_notation();
}

}  // namespace omniconv
