// Problems of activation: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/activation.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const ActivationProblem& problem);
std::string print(const ActivationProblem& problem);

namespace operations {
const text::Notation<ActivationProblem>& activation_notation();
}

}  // namespace omniconv
