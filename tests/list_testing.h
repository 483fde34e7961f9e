// The project's lists of problems.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "omniconv/problem.h"

namespace omniconv {

// The problems of data/problems/NAME, which are all of one operation.
template <typename T>
std::vector<T> listed_problems(const std::string& name) {
  const std::string path = std::string(OMNICONV_SOURCE_DIR) + "/data/problems/" + name;
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  std::vector<T> problems;
  for (const Problem& problem : parse_problem_list(text.str(), path)) problems.push_back(get<T>(problem));
  EXPECT_FALSE(problems.empty()) << path;
  return problems;
}

}  // namespace omniconv
