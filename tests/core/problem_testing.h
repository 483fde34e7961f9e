// What the tests of problems share: parsing to one kind, and the text of refusals.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>

#include "../error_testing.h"
#include "omniconv/conv2d.h"
#include "omniconv/filter2d.h"
#include "omniconv/gemm.h"
#include "omniconv/problem.h"

namespace omniconv {

template <typename T>
T parse(std::string_view line) {
  return get<T>(parse_problem(line));
}
inline const auto conv = parse<Conv2dProblem>;
inline const auto filter = parse<Filter2dProblem>;
inline const auto gemm = parse<GemmProblem>;

inline std::string canonical(std::string_view line) {
  return to_text(parse_problem(line));
}

template <typename Call>
std::string message_of(const Call& call) {
  const std::string message = error_of(call);
  EXPECT_EQ(std::count_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c > 0x7E; }), 0);
  EXPECT_LT(message.size(), 1000u);
  return message;
}

// What is wrong with the line, from its column on.
inline std::string refusal(std::string_view line) {
  const std::string message = message_of([&] { parse_problem(line); });
  const std::string beginning = "problem text, column ";
  EXPECT_TRUE(message.starts_with(beginning)) << message;
  return message.substr(std::min(message.size(), beginning.size()));
}

inline void expect_refusal(std::string_view line, int column, std::string_view part) {
  const std::string found = refusal(line);
  EXPECT_TRUE(found.starts_with(std::to_string(column) + ": ")) << line << "\n  " << found;
  EXPECT_NE(found.find(part), std::string::npos) << line << "\n  " << found;
}

}  // namespace omniconv
