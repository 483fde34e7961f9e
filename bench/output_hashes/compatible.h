// What differs between the commits that scripts/compare-commits.py compares. The rest of this program uses what all of
// them have: the public headers' typed problems, plans and explain().
#pragma once

#include <omniconv/problem.h>

#include <variant>

namespace omniconv::hashes {

// Null where the problem is another operation's. Problem was a std::variant before it became a class of its own.
template <typename T, typename AnyProblem>
const T* get_if(const AnyProblem& problem) {
  if constexpr (requires { problem.template get_if<T>(); })
    return problem.template get_if<T>();
  else
    return std::get_if<T>(&problem);
}

// Code as later runs have it, where contexts would begin by other code.
template <typename AnyOptions>
void compile_once(AnyOptions& options) {
  if constexpr (requires { options.quick_start; }) options.quick_start = false;
}

}  // namespace omniconv::hashes
