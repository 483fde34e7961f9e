// Problems of update: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/update.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const UpdateProblem& problem);
std::string print(const UpdateProblem& problem);

namespace operations {
const text::Notation<UpdateProblem>& update_notation();
}

}  // namespace omniconv
