// norm: every solver of the CPU against the definition, to the bit; PyTorch's own numbers; values that are no ordinary
// numbers; the operation's bad input.
#include "omniconv/norm.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>

#include "../error_testing.h"
#include "../list_testing.h"
#include "conformance.h"
#include "matrix_testing.h"
#include "norm_testing.h"

namespace omniconv::norm_testing {
namespace {

constexpr const char *direct = "norm/direct/cpu.1", *reference = "norm/double/cpu.1";
constexpr DataType types[] = {DataType::f32, DataType::f64, DataType::f16, DataType::bf16};

// Calls body() with each set of instructions that the processor has.
template <typename Body>
void for_instruction_sets(const Body& body) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    body();
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(Norm, EveryTypeAtAnyInstructionSet) {
  for_instruction_sets([] {
    const Context context({.device = "cpu", .threads = 2});
    for (const DataType type : types)
      for (const char* const rest : {"n1", "n33", "acc n1000", "acc n9001", "n20011"})
        EXPECT_EQ(expect_exact_and_bounded(context, parse_problem(fmt::format("norm {} {}", name(type), rest)),
                                           {.solver = {.solver = "all"}}),
                  2);
  });
}

TEST(Norm, BitsAreThoseOfTheDefinition) {
  for_instruction_sets([] {
    const Context context({.device = "cpu", .threads = 2});
    for (const DataType type : types) expect_defined_bits(context, direct, type);
  });
}

TEST(Norm, BitsDoNotDependOnThreads) {
  const NormProblem problem = norm("acc n300007");
  const std::vector<double> g = some_gradient(problem);
  const NormScalars scalars{.most = 2};
  const NormResult expected = defined(problem, scalars, g, 3);
  for (const int threads : {1, 3, 8})
    for (int again = 0; again < 4; ++again)
      expect_same(found(Context({.device = "cpu", .threads = threads}), problem, direct, scalars, g, 3), expected,
                  fmt::format("{} threads", threads));
}

// torch.nn.utils.clip_grad_norm_ of [3, 4] and [12]: total_norm is 13, and clip_coef max_norm / (total_norm + 1e-6),
// clamped to 1.
TEST(Norm, GradientsInTwoArraysAreClippedTogether) {
  const Context context({.device = "cpu", .threads = 1});
  const double epsilon = 1e-6;
  for (const char* const solver : {direct, reference}) {
    const NormScalars scalars{.most = 6.5};
    const NormResult first = found(context, norm("f64 n2"), solver, scalars, {3, -4});
    EXPECT_EQ(first.sum, 25) << solver;
    EXPECT_EQ(first.factor, 1) << solver;
    const NormResult both = found(context, norm("acc f64 n1"), solver, scalars, {12}, first.sum);
    EXPECT_EQ(both.sum, 169) << solver;
    EXPECT_EQ(both.factor, 6.5 / (13 + epsilon)) << solver;
    // What is exactly as long as it may be is shorter by the millionth, as PyTorch's is.
    EXPECT_EQ(found(context, norm("f64 n2"), solver, {.most = 5}, {3, -4}).factor, 5 / (5 + epsilon)) << solver;
    EXPECT_EQ(found(context, norm("f64 n2"), solver, {.most = 0}, {3, -4}).factor, 0) << solver;
    EXPECT_EQ(found(context, norm("f64 n2"), solver, {.most = 1e-7}, {0, 0}).factor, 0.1) << solver;
    // Of gradients of a loss times 128, and the gradients of the loss by themselves: powers of two change no bits.
    const NormResult scaled =
        found(context, norm("acc f64 n1"), solver, {.most = 6.5, .scale = 1.0 / 128}, {12 * 128}, 25 * 128 * 128);
    EXPECT_EQ(scaled.factor, both.factor / 128) << solver;
    EXPECT_EQ(found(context, norm("f16 n2"), solver, {.scale = 1.0 / 128}, {3, -4}).factor, 1.0 / 128) << solver;
  }
}

TEST(Norm, WhatIsNotFiniteStops) {
  const Context context({.device = "cpu", .threads = 2});
  for (const DataType type : types)
    for (const char* const solver : {direct, reference}) expect_what_is_not_finite_stops(context, solver, type);
}

TEST(Norm, RecordedRunsReadChangingScalars) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const text : {"n500", "acc f16 n9000", "acc f64 n500"})
    expect_recorded_runs(context, norm(text), direct);
}

// The list, smaller, by every solver, with guards.
TEST(Norm, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  for (NormProblem problem : listed_problems<NormProblem>("norms.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 200'011);
    EXPECT_EQ(expect_exact_and_bounded(context, problem, {.solver = {.solver = "all"}}), 2);
  }
}

TEST(Norm, RefusesWhatIsNone) {
  const auto refusal = [](const std::string& text) { return error_of([&] { norm(text); }); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"n0", "n is 0: must be at least 1"},
      {"acc", "n (elements)"},
      {"tf32 n4", "column 6: found 'tf32'"},
      {"acc acc n4", "acc"},
      {"n4c2", "c2"},
      {"n9223372036854775807", "the gradient"},
  };
  for (const auto& [text, part] : refused) EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  EXPECT_EQ(to_text(parse_problem("norm f32 n12 \"all layers\"")), "norm n12 \"all layers\"");
  EXPECT_EQ(to_text(parse_problem("norm n7 bf16 acc")), "norm acc bf16 n7");
  const Context context({.device = "cpu", .threads = 1});
  const std::string error = error_of([&] { NormPlan(context, {.type = DataType::s32, .n = 4}); }, ErrorKind::bad_input);
  EXPECT_NE(error.find("type is s32"), std::string::npos) << error;
  const std::string too_long =
      error_of([&] { NormPlan(context, norm("n144115188075855872"), {.solver = direct}); }, ErrorKind::bad_input);
  EXPECT_NE(too_long.find("sums have chains of "), std::string::npos) << too_long;
}

TEST(Norm, RefusesNumbersThatAreNone) {
  const Context context({.device = "cpu", .threads = 1});
  const NormPlan plan(context, norm("n4"));
  NormOnDevice on_device(context, plan, {1, 2, 3, 4});
  const auto refusal = [&](double most, double scale) {
    on_device.run.most = most, on_device.run.scale = scale;
    return error_of([&] { plan.run(on_device.queue(), on_device.run); }, ErrorKind::bad_input);
  };
  EXPECT_NE(refusal(-1, 1).find("most is -1: must be at least 0"), std::string::npos);
  EXPECT_NE(refusal(std::nan(""), 1).find("most is nan"), std::string::npos);
  for (const double scale : {0.0, -1.0, infinity, std::nan("")})
    EXPECT_NE(refusal(1, scale).find(fmt::format("scale is {}: must be a finite number above 0", scale)),
              std::string::npos);
}

TEST(Norm, RefusesArraysThatOverlapOrLack) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const Buffer buffer = context.allocate(64), other = context.allocate(64);
  const NormPlan plan(context, norm("n4"));
  const auto refusal = [&](const NormRun& run) {
    return error_of([&] { plan.run(queue, run); }, ErrorKind::bad_input);
  };
  const NormRun run{.g = {other}, .factor = {buffer}, .sum = {buffer, 4}, .workspace = context.allocate(64)};
  plan.run(queue, run).wait();
  NormRun wrong = run;
  wrong.sum.offset_bytes = 0;
  EXPECT_NE(refusal(wrong).find("overlap in memory"), std::string::npos);
  wrong = run, wrong.g = {buffer, 8}, wrong.sum.offset_bytes = 20;
  EXPECT_NE(refusal(wrong).find("sum and g overlap in memory"), std::string::npos) << refusal(wrong);
  wrong = run, wrong.factor = {};
  EXPECT_NE(refusal(wrong).find("the buffer of factor is missing"), std::string::npos);
  wrong = run, wrong.workspace = {};
  EXPECT_NE(refusal(wrong).find("workspace"), std::string::npos);
}

}  // namespace
}  // namespace omniconv::norm_testing
