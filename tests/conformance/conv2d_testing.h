// The problems over which the conv2d solvers of a device are checked.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "matrix_testing.h"

namespace omniconv {

inline std::vector<Conv2dProblem> conv2d_list(const std::string& name) {
  const std::string path = std::string(OMNICONV_SOURCE_DIR) + "/data/problems/" + name;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::vector<Conv2dProblem> problems;
  for (const Problem& problem : parse_problem_list(text.str(), path))
    problems.push_back(std::get<Conv2dProblem>(problem));
  return problems;
}

inline constexpr Pass all_passes[] = {Pass::forward, Pass::backward_data, Pass::backward_filter};

inline Conv2dProblem conv2d_problem(const std::string& text) {
  return std::get<Conv2dProblem>(parse_problem(text));
}

// tails.txt: every pass, in both layouts, or (since each costs a compilation) in one of the two in turn.
enum class Layouts { both, in_turn };
inline void check_tails(const Context& context, Layouts layouts) {
  int number = 0;
  for (Conv2dProblem problem : conv2d_list("tails.txt"))
    for (const Pass pass : all_passes) {
      ++number;
      for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
        if (layouts == Layouts::in_turn && (number / 2 + number) % 2 != static_cast<int>(layout)) continue;
        problem.layout = layout;
        expect_exact_and_bounded(context, with_pass(problem, pass),
                                 {.solver = {.solver = "all"}, .sampled = true, .samples = 512});
      }
    }
}

// Each type, with everything that is fused.
inline void check_types(const Context& context, std::initializer_list<const char*> types, Layouts layouts) {
  int number = 0;
  for (const char* type : types)
    for (const char* layout : {"nchw", "nhwc"})
      for (const char* words :
           {"fwd bias relu acc", "fwd flip bias", "bwd_data acc", "bwd_filter acc", "bwd_data flip", "bwd_filter flip"})
        for (const char* geometry : {"n3c6h9w11k4r3s2p1g2u2", "n2c5h8w7k10r1s1"}) {
          if (layouts == Layouts::in_turn && ++number % 3 != 0) continue;
          expect_exact_and_bounded(context, conv2d_problem(fmt::format("{} {} {} {}", words, type, layout, geometry)),
                                   {.solver = {.solver = "all"}});
        }
}

}  // namespace omniconv
