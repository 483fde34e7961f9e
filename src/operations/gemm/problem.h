// Problems of gemm: their rules and their text.
#pragma once

#include <optional>
#include <string>

#include "core/problem_words.h"
#include "omniconv/gemm.h"

namespace omniconv {

std::optional<BrokenRule> first_broken_rule(const GemmProblem& problem);
std::string print(const GemmProblem& problem);

namespace operations {
const text::Notation<GemmProblem>& gemm_notation();
}

}  // namespace omniconv
