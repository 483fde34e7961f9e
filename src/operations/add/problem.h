// Problems of add: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/add.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const AddProblem& problem);
std::string print(const AddProblem& problem);

namespace operations {
const text::Notation<AddProblem>& add_notation();
}

}  // namespace omniconv
