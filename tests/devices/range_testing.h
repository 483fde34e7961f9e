// Numbers of any range through a solver of conv2d that scales them, against the definition; and its runs replayed.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../conformance/conv2d_testing.h"
#include "float_arrays.h"
#include "omniconv/plan.h"
#include "operations/conv2d/conv2d.h"

namespace omniconv {

// Arrays of a pass by a solver; the output as it holds.
struct Arrays {
  std::vector<float> x, w, y;
};
inline std::vector<float> made_by(const Context& context, const Conv2dProblem& problem, const char* id,
                                  const Arrays& arrays) {
  Queue queue = context.make_queue();
  const auto put = [&](const std::vector<float>& values) { return uploaded(context, queue, values); };
  const Conv2dPlan plan(context, problem, {.solver = id});
  Conv2dRun run{.x = put(arrays.x), .w = put(arrays.w), .y = put(arrays.y)};
  if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
  plan.run(queue, run).wait();
  const Buffer out = (problem.pass == Pass::forward         ? run.y
                      : problem.pass == Pass::backward_data ? run.x
                                                            : run.w)
                         .buffer;
  std::vector<float> values(static_cast<std::size_t>(out.bytes() / 4));
  queue.download(values.data(), out, 0, out.bytes()).wait();
  return values;
}

// Of the result NaN and infinities are those of the definition, the rest lies within the bound.
inline void expect_as_defined(const Context& context, const char* solver, const Conv2dProblem& problem,
                              const Arrays& arrays) {
  const Context cpu({.device = "cpu"});
  const std::vector<float> found = made_by(context, problem, solver, arrays),
                           wanted = made_by(cpu, problem, "conv2d/double/cpu.1", arrays);
  Arrays magnitudes = arrays;
  for (std::vector<float>* const each : {&magnitudes.x, &magnitudes.w, &magnitudes.y})
    for (float& value : *each) value = std::isfinite(value) ? std::fabs(value) : 0;
  const std::vector<float> sums = made_by(cpu, problem, "conv2d/double/cpu.1", magnitudes);
  const double terms = operations::longest_sum(problem),
               absolute =
                   terms * 0x1p-38 *
                   static_cast<double>(largest(problem.pass == Pass::backward_data ? magnitudes.y : magnitudes.x)) *
                   static_cast<double>(largest(problem.pass == Pass::backward_filter ? magnitudes.y : magnitudes.w));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!std::isfinite(wanted[i])) {
      if (std::isnan(wanted[i]))
        ASSERT_TRUE(std::isnan(found[i])) << to_text(problem) << " at " << i << ": " << found[i];
      else
        ASSERT_EQ(found[i], wanted[i]) << to_text(problem) << " at " << i;
      continue;
    }
    const double allowed = 64 * 0x1p-23 * static_cast<double>(sums[i]) + absolute + 0x1p-149;
    ASSERT_NEAR(found[i], wanted[i], allowed) << to_text(problem) << " at " << i;
  }
}

// What a solver serves.
struct Served {
  std::span<const Pass> passes = all_passes;
  const char* geometry = "n2c20h9w8k12r3s3p1";
};

// Of arrays so large, in all passes and layouts.
inline void expect_of_scales(const Context& context, const char* solver, float of_x, float of_w,
                             const Served& served = {}) {
  for (const Pass pass : served.passes)
    for (const char* layout : {"nchw", "nhwc"}) {
      const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} {}", layout, served.geometry)), pass);
      const Conv2dElements all = elements_of(problem);
      expect_as_defined(context, solver, problem,
                        {randoms(all.x, 1, of_x), randoms(all.w, 2, pass == Pass::backward_data ? of_x : of_w),
                         randoms(all.y, 3, of_w)});
    }
}

inline void expect_largest_beside_smallest(const Context& context, const char* solver, const Served& served = {}) {
  for (const Pass pass : served.passes) {
    const Conv2dProblem problem = with_pass(conv2d_problem(served.geometry), pass);
    const Conv2dElements all = elements_of(problem);
    Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 0x1p-20f), randoms(all.y, 3, 0x1p-20f)};
    arrays.x[7] = 0x1p127f, arrays.x[100] = 0x1p-126f, arrays.w[5] = 0x1p-126f;
    if (pass == Pass::backward_data) arrays.y[30] = 0x1p127f;
    expect_as_defined(context, solver, problem, arrays);
  }
}

// Infinities of both signs and NaN, in one operand and in both.
inline void expect_infinities_as_defined(const Context& context, const char* solver,
                                         std::initializer_list<const char*> geometries,
                                         std::span<const Pass> passes = all_passes) {
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const Pass pass : passes)
    for (const char* geometry : geometries)
      for (const float odd : {infinity, -infinity, none}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(geometry), pass);
        const Conv2dElements all = elements_of(problem);
        Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
        std::vector<float>& first = pass == Pass::backward_data ? arrays.y : arrays.x;
        first[first.size() / 2] = odd;
        expect_as_defined(context, solver, problem, arrays);
        std::vector<float>& second = pass == Pass::backward_filter ? arrays.y : arrays.w;
        second[second.size() / 3] = -odd;
        expect_as_defined(context, solver, problem, arrays);
      }
}

// Nothing is read back and nothing allocated, so that a recording gives what a run gives.
inline void expect_replayed(const Context& context, const char* solver, std::initializer_list<const char*> problems) {
  Queue queue = context.make_queue();
  for (const char* text : problems) {
    const Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements all = elements_of(problem);
    const Conv2dPlan plan(context, problem, {.solver = solver});
    Conv2dRun run{
        .x = {context.allocate(all.x * 4)}, .w = {context.allocate(all.w * 4)}, .y = {context.allocate(all.y * 4)}};
    run.workspace = context.allocate(plan.workspace_bytes());
    const Buffer out = (problem.pass == Pass::forward         ? run.y
                        : problem.pass == Pass::backward_data ? run.x
                                                              : run.w)
                           .buffer;
    const auto fill = [&](std::uint64_t seed, float scale) {
      for (const Operand* const each : {&run.x, &run.w, &run.y}) {
        const std::vector<float> values = randoms(each->buffer.bytes() / 4, ++seed, scale);
        queue.upload(each->buffer, 0, values.data(), each->buffer.bytes()).wait();
      }
    };
    const auto result = [&] {
      std::vector<float> values(static_cast<std::size_t>(out.bytes() / 4));
      queue.download(values.data(), out, 0, out.bytes()).wait();
      return values;
    };
    Sequence sequence = context.make_sequence();
    plan.append(sequence, run);
    const Recording recording = context.record(std::move(sequence));
    for (const float scale : {1.0f, 0x1p40f, 0x1p-40f}) {
      fill(5, scale);
      plan.run(queue, run).wait();
      const std::vector<float> wanted = result();
      fill(5, scale);
      recording.replay(queue).wait();
      EXPECT_EQ(result(), wanted) << text;
    }
  }
}

}  // namespace omniconv
