// What the conformance tests share: every solver of a device on a problem, checked, and every failure reported.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "image/kernels.h"
#include "omniconv/filter2d.h"
#include "ops/random_image.h"
#include "ops/verify.h"

namespace omniconv {

// The sanitizers look at every access of the references, element by element: they get smaller images.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool instrumented = true;
#else
inline constexpr bool instrumented = false;
#endif
inline constexpr std::int64_t most_pixels = instrumented ? 10'000 : 100'000,
                              most_taps = instrumented ? 6'000'000 : 60'000'000;
// Of a sample of so many elements.
constexpr std::int64_t samples(std::int64_t wanted) {
  return instrumented ? wanted / 10 : wanted;
}

inline Filter filter_for(const Filter2dProblem& problem, std::uint64_t seed = 1) {
  const image::Kernel kernel = image::kernel_for(problem, seed);
  return centred(problem, {.weights = kernel.weights});
}

// Returns how many solvers served; at least one must.
inline int expect_conformance(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                              const VerifyOptions& wanted = {}) {
  VerifyOptions options = wanted;
  options.solver = "all";
  int served = 0;
  for (const VerifyResult& result : verify(context, problem, filter, options)) {
    EXPECT_NE(result.status, Status::failed)
        << to_text(problem) << " on " << context.device().id << ": " << result.solver << ": " << result.reason;
    served += result.status == Status::ok;
  }
  EXPECT_GT(served, 0) << to_text(problem) << " on " << context.device().id << ": no solver serves it";
  return served;
}

inline int expect_conformance(const Context& context, const std::string& text, const VerifyOptions& options = {}) {
  const auto problem = std::get<Filter2dProblem>(parse_problem(text));
  return expect_conformance(context, problem, filter_for(problem), options);
}

// The project's filtering problems, extents shrunk until the image has at most most_pixels and holds the kernel where
// the full one did.
inline std::vector<Filter2dProblem> shrunk_problems() {
  std::ifstream file(std::string(OMNICONV_SOURCE_DIR) + "/data/problems/filters.txt");
  std::stringstream text;
  text << file.rdbuf();
  std::vector<Filter2dProblem> problems;
  for (const Problem& parsed : parse_problem_list(text.str(), "filters.txt")) {
    Filter2dProblem problem = std::get<Filter2dProblem>(parsed);
    while (problem.h * problem.w > most_pixels) {
      problem.h = std::max<std::int64_t>(problem.h * 7 / 10, std::min(problem.h, problem.r + 1));
      problem.w = std::max<std::int64_t>(problem.w * 7 / 10, std::min(problem.w, problem.s + 1));
    }
    // The references take r * s steps an element: large kernels get small images.
    while (problem.h * problem.w * problem.c * problem.r * problem.s > most_taps && problem.h > problem.r + 1) {
      problem.h = std::max(problem.h * 7 / 10, problem.r + 1);
      problem.w = std::max(problem.w * 7 / 10, problem.s + 1);
    }
    problems.push_back(problem);
  }
  return problems;
}

}  // namespace omniconv
