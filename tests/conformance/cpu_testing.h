// What the conformance tests of the CPU's filters share.
#pragma once

#include <string>

#include "conformance.h"

namespace omniconv {

inline const Context& cpu() {
  static const Context context({.device = "cpu", .threads = 2});
  return context;
}

inline Filter2dProblem problem_of(const std::string& text) {
  return get<Filter2dProblem>(parse_problem(text));
}

inline constexpr const char* borders[] = {"constant:0", "constant:7", "replicate", "reflect",
                                          "reflect101", "wrap",       "valid"};

}  // namespace omniconv
