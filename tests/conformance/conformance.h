// What the conformance tests share: every solver of a device on a problem, checked, and every failure reported.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "../list_testing.h"
#include "checking/verify.h"
#include "omniconv/filter2d.h"
#include "operations/filter2d/kernels.h"
#include "operations/filter2d/random_image.h"
#include "operations/filter2d/weights.h"

namespace omniconv {

// The sanitizers look at every access of the references, element by element: they get smaller images and a sample of
// each result, and the references, which make the samples, do not run as solvers of their own.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool instrumented = true;
#else
inline constexpr bool instrumented = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool threads_watched = true;
#else
inline constexpr bool threads_watched = false;
#endif
inline constexpr std::int64_t most_pixels = instrumented ? 10'000 : 50'000,
                              most_taps = instrumented ? 6'000'000 : 30'000'000;
// Of a sample of so many elements.
constexpr std::int64_t samples(std::int64_t wanted) {
  return instrumented ? wanted / 10 : wanted;
}

inline Filter filter_for(const Filter2dProblem& problem) {
  return filter_for(problem, 1);
}

// All these types; for the sanitizers the plain ones and three of the mixed, for that of threads, which are the same
// for every type, four.
inline std::vector<const char*> types_to_check(std::vector<const char*> types) {
  const auto left_out = [](const std::string_view type) {
    if (threads_watched) return type != "u8" && type != "u16" && type != "f32" && type != "f64";
    return type.find('>') != type.npos && type != "u8>f32" && type != "f32>u8" && type != "u8>s16";
  };
  if (instrumented) std::erase_if(types, left_out);
  return types;
}

// `all`, or each candidate that the sanitizers are to look at.
inline std::vector<std::string> solvers_to_check(const Context& context, const Filter2dProblem& problem,
                                                 const Filter& filter) {
  if (!instrumented) return {"all"};
  std::vector<std::string> ids;
  for (const Candidate& candidate : explain(context, problem, filter))
    if (candidate.applicable && !candidate.solver.starts_with("filter2d/definition/") &&
        !candidate.solver.starts_with("filter2d/double/"))
      ids.push_back(candidate.solver);
  return ids;
}

// Returns how many solvers served; at least one must.
inline int expect_conformance(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                              const checking::VerifyOptions& wanted = {}) {
  checking::VerifyOptions options = wanted;
  // Stray accesses and races show in any run; that all results are right, shows without the sanitizers.
  if (instrumented) options.samples = std::min<std::int64_t>(options.samples, 256);
  options.sampled = options.sampled || instrumented;
  int served = 0;
  for (const std::string& solver : solvers_to_check(context, problem, filter)) {
    options.solver.solver = solver;
    for (const checking::VerifyResult& result :
         checking::verify(context, problem, operations::AnyTask(task_for(problem, filter)), options)) {
      EXPECT_NE(result.status, checking::Status::failed)
          << to_text(problem) << " on " << context.device().id << ": " << result.solver << ": " << result.reason;
      served += result.status == checking::Status::ok;
    }
  }
  EXPECT_GT(served, 0) << to_text(problem) << " on " << context.device().id << ": no solver serves it";
  return served;
}

inline int expect_conformance(const Context& context, const std::string& text,
                              const checking::VerifyOptions& options = {}) {
  const auto problem = get<Filter2dProblem>(parse_problem(text));
  return expect_conformance(context, problem, filter_for(problem), options);
}

// The filtering problems of one of the project's lists, extents shrunk until the image has at most most_pixels and
// holds the kernel where the full one did.
inline std::vector<Filter2dProblem> shrunk_problems(const std::string& list = "filters.txt") {
  std::vector<Filter2dProblem> problems = listed_problems<Filter2dProblem>(list);
  for (Filter2dProblem& problem : problems) {
    // The references take r * s steps an element: large kernels get small images, smaller still under the sanitizers.
    const auto least = [](std::int64_t extent, std::int64_t taps) {
      return std::min(extent, instrumented ? taps / 4 + 1 : taps + 1);
    };
    const auto large = [](const Filter2dProblem& p) {
      return p.h * p.w > most_pixels || p.h * p.w * p.c * p.r * p.s > most_taps;
    };
    while (large(problem)) {
      const bool valid = problem.border.mode == BorderMode::valid;
      const std::int64_t h = std::max(problem.h * 7 / 10, valid ? problem.r + 1 : least(problem.h, problem.r));
      const std::int64_t w = std::max(problem.w * 7 / 10, valid ? problem.s + 1 : least(problem.w, problem.s));
      if (h == problem.h && w == problem.w) break;
      problem.h = h;
      problem.w = w;
    }
  }
  return problems;
}

}  // namespace omniconv
