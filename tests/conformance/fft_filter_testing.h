// What the tests of filter2d/fft share, for any device.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "cpu_testing.h"

namespace omniconv {

inline constexpr const char* direct_filter = "filter2d/direct/cpu.1";

// By this solver alone, within its bound.
inline void expect_filtered_by(const char* solver, const Context& context, const Filter2dProblem& problem,
                               const Filter& filter, const std::string& text, checking::VerifyOptions options = {}) {
  options.solver.solver = solver;
  for (const checking::VerifyResult& result :
       checking::verify(context, problem, operations::AnyTask(task_for(problem, filter)), options))
    EXPECT_EQ(result.status, checking::Status::ok)
        << solver << ' ' << text << ' ' << options.solver.tuning << ": " << result.reason;
}

inline std::string filter_reason(const char* solver, const Context& context, const std::string& text,
                                 const SolverOptions& options = {}) {
  const Filter2dProblem problem = problem_of(text);
  for (const Candidate& candidate : explain(context, problem, filter_for(problem), options))
    if (candidate.solver == solver) return candidate.applicable ? "" : candidate.reason;
  return "not a candidate";
}

// Of an output of `before`, so many rows: all (-1) or none. The workspace holds what is no number.
inline std::vector<float> filtered_by(const char* solver, const Context& context, const Filter2dProblem& problem,
                                      const Filter& filter, const std::vector<float>& image, float before = 0,
                                      std::int64_t rows = -1, SolverOptions options = {}) {
  options.solver = solver;
  const Filter2dPlan plan(context, problem, filter, options);
  std::vector<float> made(static_cast<std::size_t>(P(problem) * Q(problem) * problem.c), before);
  const std::vector<float> poison(static_cast<std::size_t>(plan.workspace_bytes() / 4 + 1), NAN);
  Queue queue = context.make_queue();
  const auto buffer_of = [&](const std::vector<float>& values) {
    const Buffer buffer = context.allocate(static_cast<std::int64_t>(values.size() * sizeof(float)));
    queue.upload(buffer, 0, values.data(), buffer.bytes()).wait();
    return buffer;
  };
  Filter2dRun run{.input = buffer_of(image), .output = buffer_of(made), .workspace = buffer_of(poison)};
  if (rows >= 0) run.output_first = 4, run.output_rows = rows;
  plan.run(queue, run);
  queue.download(made.data(), run.output, 0, run.output.bytes()).wait();
  return made;
}

// Infinities and NaN go no further than windows reach, as by the definition.
inline void expect_what_is_not_finite_to_stay(const char* solver, const Context& context) {
  const Filter2dProblem problem = problem_of("filter2d f32 h150w140c2r9s7 reflect");
  const Filter filter = filter_for(problem);
  std::vector<float> image(150 * 140 * 2);
  std::mt19937 random(1);
  for (float& value : image) value = static_cast<float>(random() % 1000) / 999.0f;
  const auto pixel = [&](int row, int column, int channel) -> float& {
    return image[static_cast<std::size_t>((row * 140 + column) * 2 + channel)];
  };
  pixel(3, 4, 0) = std::numeric_limits<float>::quiet_NaN();
  pixel(149, 139, 1) = std::numeric_limits<float>::infinity();
  pixel(70, 60, 1) = -std::numeric_limits<float>::infinity();
  const std::vector<float> found = filtered_by(solver, context, problem, filter, image),
                           expected = filtered_by(direct_filter, cpu(), problem, filter, image);
  int finite = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::isnan(found[i]), std::isnan(expected[i])) << i;
    if (std::isinf(expected[i])) {
      ASSERT_EQ(found[i], expected[i]) << i;
    }
    if (!std::isfinite(expected[i])) continue;
    ASSERT_NEAR(found[i], expected[i], 1e-3) << i;
    ++finite;
  }
  EXPECT_LT(finite, static_cast<int>(found.size()) - 3 * 40);
}

// Finite numbers whose tiles' spectra are not.
inline void expect_large_numbers_to_be_filtered(const char* solver, const Context& context) {
  const Filter2dProblem problem = problem_of("filter2d f32 h90w80c1r31s31");
  const Filter filter{.weights = std::vector<double>(31 * 31, 1.0 / (31 * 31))};
  std::vector<float> image(90 * 80, 1e35f);
  for (std::size_t i = 0; i < image.size(); i += 7) image[i] = 3e34f;
  const std::vector<float> found = filtered_by(solver, context, problem, filter, image),
                           expected = filtered_by(direct_filter, cpu(), problem, filter, image);
  for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i] / expected[i], 1, 1e-4) << i;
}

}  // namespace omniconv
