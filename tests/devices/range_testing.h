// Numbers of any range through a solver of conv2d that scales them, against the definition; and its runs replayed.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
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

// Who is asked, and whether its errors are to be relative: then all bounds here are its own, without a term by the
// largest numbers.
struct Asked {
  const char* solver;
  bool is_relative = false;
  std::string tuning = {};
  int prepared = 0;  // bits of the arrays that the pass reads: those that runs give prepared

  Asked(const char* id, bool relative = false, std::string tuned = {})
      : solver(id), is_relative(relative), tuning(std::move(tuned)) {}
  SolverOptions options() const { return {.solver = solver, .relative_error = is_relative, .tuning = tuning}; }
};

// Units of 2^-23 * sum|x*w| of its bound.
inline double units_of(const Context& context, const Problem& problem, const Asked& asked) {
  double chain = 0, constant = 0;
  const std::string bound = explain(context, problem, asked.options()).front().bound;
  EXPECT_EQ(std::sscanf(bound.c_str(), "1 * (%lf/2 + %lf) * 2^-23 * sum|a*b|", &chain, &constant), 2) << bound;
  EXPECT_TRUE(bound.ends_with("sum|a*b|")) << bound;
  return chain / 2 + constant;
}

// Arrays of a pass by a solver; the output as it holds.
struct Arrays {
  std::vector<float> x, w, y;
};
// Names of the arrays that the pass reads, of the bits 1 and 2.
inline std::vector<std::string> read_by(Pass pass, int bits) {
  std::vector<std::string> names;
  if (bits & 1) names.emplace_back(pass == Pass::backward_data ? "dy" : "x");
  if (bits & 2) names.emplace_back(pass == Pass::backward_filter ? "dy" : "w");
  return names;
}
// An array of a run as the plan takes it prepared.
inline void prepare(const Context& context, Queue& queue, const Plan& plan, const std::string& name, Operand& operand) {
  const Buffer prepared = context.allocate(plan.format(name)->bytes);
  plan.prepare(queue, name, operand, prepared).wait();
  operand = {prepared, 0, plan.format(name)};
}
inline Operand& operand_of(Conv2dRun& run, const std::string& name) {
  return name == "x" ? run.x : name == "w" ? run.w : run.y;
}
inline std::vector<float> made_by(const Context& context, const Conv2dProblem& problem, const Asked& asked,
                                  const Arrays& arrays) {
  Queue queue = context.make_queue();
  const auto put = [&](const std::vector<float>& values) { return uploaded(context, queue, values, problem.type); };
  const std::vector<std::string> names = read_by(problem.pass, asked.prepared);
  SolverOptions options = asked.options();
  options.prepared = names;
  const Conv2dPlan plan(context, problem, options);
  Conv2dRun run{.x = put(arrays.x), .w = put(arrays.w), .y = put(arrays.y)};
  for (const std::string& name : names) prepare(context, queue, plan.plan(), name, operand_of(run, name));
  if (plan.workspace_bytes() > 0) run.workspace = context.allocate(plan.workspace_bytes());
  plan.run(queue, run).wait();
  const Operand& out = problem.pass == Pass::forward ? run.y : problem.pass == Pass::backward_data ? run.x : run.w;
  return downloaded(queue, out.buffer, problem.type);
}

// Of the result NaN and infinities are those of the definition, the rest lies within the bound.
inline void expect_as_defined(const Context& context, const Asked& asked, const Conv2dProblem& problem,
                              const Arrays& arrays) {
  const Context cpu({.device = "cpu"});
  const Asked by_definition("conv2d/double/cpu.1");
  const std::vector<float> found = made_by(context, problem, asked, arrays),
                           wanted = made_by(cpu, problem, by_definition, arrays);
  Arrays magnitudes = arrays;
  for (std::vector<float>* const each : {&magnitudes.x, &magnitudes.w, &magnitudes.y})
    for (float& value : *each) value = std::isfinite(value) ? std::fabs(value) : 0;
  const std::vector<float> sums = made_by(cpu, problem, by_definition, magnitudes);
  const double terms = operations::longest_sum(problem),
               largest_product =
                   static_cast<double>(largest(problem.pass == Pass::backward_data ? magnitudes.y : magnitudes.x)) *
                   static_cast<double>(largest(problem.pass == Pass::backward_filter ? magnitudes.y : magnitudes.w));
  // Products of 16-bit numbers stay in the units to the end, which cut off up to ten units of 16 of them; the result
  // and the definition's are both rounded to the type.
  const bool is_f32 = size_of(problem.type) == 4;
  const double units = asked.is_relative ? units_of(context, problem, asked)
                       : is_f32          ? 64
                                         : 64 + 10 * terms / 16,
               absolute = is_f32 && !asked.is_relative ? terms * 0x1p-38 * largest_product : 0;
  const double of_type = problem.type == DataType::f16    ? 0x1p-10
                         : problem.type == DataType::bf16 ? 0x1p-7
                                                          : 0,
               least = problem.type == DataType::f16 ? 0x1p-24 : 0x1p-133;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!std::isfinite(wanted[i])) {
      if (std::isnan(wanted[i]))
        ASSERT_TRUE(std::isnan(found[i])) << to_text(problem) << " at " << i << ": " << found[i];
      else
        ASSERT_EQ(found[i], wanted[i]) << to_text(problem) << " at " << i;
      continue;
    }
    ASSERT_TRUE(std::isfinite(found[i])) << to_text(problem) << " at " << i << ": " << found[i] << ", not "
                                         << wanted[i];
    const double allowed = units * 0x1p-23 * static_cast<double>(sums[i]) + absolute +
                           of_type * std::fabs(static_cast<double>(wanted[i])) + least;
    ASSERT_NEAR(found[i], wanted[i], allowed) << to_text(problem) << " at " << i;
  }
}
// What a solver serves.
struct Served {
  std::span<const Pass> passes = all_passes;
  const char* geometry = "n2c20h9w8k12r3s3p1";
  std::string tuning = {};
};

// Of arrays so large, in all passes and layouts.
inline void expect_of_scales(const Context& context, const Asked& solver, float of_x, float of_w,
                             const Served& served = {}) {
  for (const Pass pass : served.passes)
    for (const char* layout : {"nchw", "nhwc"}) {
      const Conv2dProblem problem = with_pass(conv2d_problem(fmt::format("{} {}", layout, served.geometry)), pass);
      const Conv2dElements all = elements_of(problem);
      expect_as_defined(context, {solver.solver, solver.is_relative, served.tuning}, problem,
                        {randoms(all.x, 1, of_x), randoms(all.w, 2, pass == Pass::backward_data ? of_x : of_w),
                         randoms(all.y, 3, of_w)});
    }
}

inline void expect_largest_beside_smallest(const Context& context, const Asked& solver, const Served& served = {}) {
  for (const Pass pass : served.passes) {
    const Conv2dProblem problem = with_pass(conv2d_problem(served.geometry), pass);
    const Conv2dElements all = elements_of(problem);
    Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 0x1p-20f), randoms(all.y, 3, 0x1p-20f)};
    arrays.x[7] = 0x1p127f, arrays.x[100] = 0x1p-126f, arrays.w[5] = 0x1p-126f;
    if (pass == Pass::backward_data) arrays.y[30] = 0x1p127f;
    expect_as_defined(context, {solver.solver, solver.is_relative, served.tuning}, problem, arrays);
  }
}

// Infinities of both signs and NaN, in either operand and in both.
inline void expect_infinities_as_defined(const Context& context, const Asked& asked,
                                         std::initializer_list<const char*> geometries,
                                         std::span<const Pass> passes = all_passes, const std::string& tuning = {}) {
  Asked options = asked;
  options.tuning = tuning;
  constexpr float infinity = std::numeric_limits<float>::infinity(), none = std::numeric_limits<float>::quiet_NaN();
  for (const Pass pass : passes)
    for (const char* geometry : geometries)
      for (const float odd : {infinity, -infinity, none}) {
        const Conv2dProblem problem = with_pass(conv2d_problem(geometry), pass);
        const Conv2dElements all = elements_of(problem);
        Arrays arrays{randoms(all.x, 1, 1), randoms(all.w, 2, 1), randoms(all.y, 3, 1)};
        std::vector<float>& first = pass == Pass::backward_data ? arrays.y : arrays.x;
        const float before = first[first.size() / 2];
        first[first.size() / 2] = odd;
        expect_as_defined(context, options, problem, arrays);
        std::vector<float>& second = pass == Pass::backward_filter ? arrays.y : arrays.w;
        second[second.size() / 3] = -odd;
        expect_as_defined(context, options, problem, arrays);
        first[first.size() / 2] = before;
        expect_as_defined(context, options, problem, arrays);
      }
}

// Nothing is read back and nothing allocated, so that a recording gives what a run gives.
inline void expect_replayed(const Context& context, const Asked& solver, std::initializer_list<const char*> problems) {
  Queue queue = context.make_queue();
  for (const char* text : problems) {
    const Conv2dProblem problem = conv2d_problem(text);
    const Conv2dElements all = elements_of(problem);
    const Conv2dPlan plan(context, problem, solver.options());
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
    const auto result = [&] { return downloaded(queue, out); };
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
