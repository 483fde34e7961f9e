// What a caller may ask of the choice, to the letter and to the limit; and that a context remembers plans by all of it.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include "../error_testing.h"
#include "choice/plan_record.h"
#include "cpu_testing.h"
#include "omniconv/plan.h"

namespace omniconv {
namespace {

constexpr const char* layer = "n1c4h8w8k4r3s3p1";

std::string chosen(const SolverOptions& options) {
  return Plan(cpu(), parse_problem(layer), options).solver();
}
std::string refused(const SolverOptions& options) {
  return error_of([&] { chosen(options); });
}

TEST(Options, NamesAreWholeWordsOfIds) {
  for (const char* name : {"conv2d/im2col_gemm", "conv2d/im2col_gemm/", "conv2d/im2col_gemm/cpu.1"})
    EXPECT_EQ(chosen({.allow = {name}}), "conv2d/im2col_gemm/cpu.1") << name;
  for (const char* name : {"conv2d/im2col", "conv2d/im2col_gemm/cpu", "conv", "conv2d/im2col_gemm/cpu.10"}) {
    EXPECT_TRUE(refused({.allow = {name}}).starts_with(fmt::format("unknown solver '{}' in allow", name))) << name;
    EXPECT_TRUE(refused({.deny = {name}}).starts_with(fmt::format("unknown solver '{}' in deny", name))) << name;
  }
}

TEST(Options, WhatIsDeniedIsNotTakenWhereItIsAllowedToo) {
  EXPECT_EQ(chosen({}), "conv2d/blocked/cpu.1");
  EXPECT_EQ(chosen({.allow = {"conv2d"}, .deny = {"conv2d/blocked", "conv2d/direct", "conv2d/winograd", "conv2d/fft"}}),
            "conv2d/im2col_gemm/cpu.1");
  const std::string message = refused({.allow = {"conv2d/direct"}, .deny = {"conv2d"}});
  EXPECT_NE(message.find("conv2d/direct/cpu.1: is denied"), std::string::npos) << message;
}

TEST(Options, ErrorsOfJustTheLimitAreWithinIt) {
  EXPECT_EQ(chosen({.max_error = 1}), "conv2d/blocked/cpu.1");
  const std::string message = refused({.max_error = std::nextafter(1.0, 0.0)});
  EXPECT_NE(message.find("its errors are amplified 1 times"), std::string::npos) << message;
  EXPECT_EQ(refused({.max_error = NAN}), "max_error is nan: must be an amplification of at least 0, as in 1024");
}

TEST(Options, TheLeastWorkspaceIsNamedAndIsEnough) {
  const Filter2dProblem problem = problem_of("filter2d f32 h40w40r15s15 kernel:unsharp:15,3,1.5");
  const Filter filter = filter_for(problem);
  SolverOptions options{.allow = {"filter2d/rank_two", "filter2d/direct"}};
  std::set<std::int64_t> sizes;
  for (const Candidate& candidate : explain(cpu(), problem, filter, options))
    if (candidate.applicable) sizes.insert(candidate.workspace_bytes);
  ASSERT_EQ(sizes.size(), 2u);
  options.max_workspace_bytes = *sizes.begin() - 1;
  const std::string message = error_of([&] { Filter2dPlan(cpu(), problem, filter, options); });
  EXPECT_NE(message.find(fmt::format("the least that would is {};", *sizes.begin())), std::string::npos) << message;
  options.max_workspace_bytes = *sizes.begin();
  EXPECT_EQ(Filter2dPlan(cpu(), problem, filter, options).workspace_bytes(), *sizes.begin());
}

// Made twice, those at equal places alone are the same plan.
template <typename Make>
void expect_remembered_apart(std::size_t count, const Make& make) {
  std::vector<const choice::PlanRecord*> first, second;
  std::vector<std::shared_ptr<const choice::PlanRecord>> kept;  // so that no place in memory is used again
  for (auto* const records : {&first, &second})
    for (std::size_t i = 0; i < count; ++i) {
      kept.push_back(make(i));
      records->push_back(kept.back().get());
    }
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j) EXPECT_EQ(first[i] == second[j], i == j) << i << " and " << j;
}

TEST(Remembered, PlansAreOfAllOptions) {
  const Context context({.device = "cpu", .threads = 2});
  const std::string id = "conv2d/im2col_gemm/cpu.1";
  const std::vector<SolverOptions> options = {
      {},
      {.units = Units::fma},
      {.max_error = 2048},
      {.relative_error = true},
      {.max_workspace_bytes = 1 << 20},
      {.deterministic = true},
      {.allow = {"conv2d/direct"}},
      {.deny = {"conv2d/im2col_gemm"}},
      {.allow = {"conv2d/im2col_gemm"}},
      {.solver = id},
      {.solver = id, .prepared = {"w"}},
  };
  const auto plan = [&](const char* text, const SolverOptions& asked) {
    return choice::remembered_record(context, parse_problem(text), asked);
  };
  expect_remembered_apart(options.size(), [&](std::size_t i) { return plan(layer, options[i]); });
  for (const char* named : {"n1c4h8w8k4r3s3p1 \"a name\"", "n1c4h8w8k4r3s3p1 \"another\""})
    EXPECT_EQ(plan(named, {}), plan(layer, {}));
}

TEST(Remembered, FiltersAreAllThatDecidesThem) {
  const Context context({.device = "cpu", .threads = 2});
  const std::vector<double> weights{1, 2, 3, 4, 5, 6, 7, 8, 10}, others{2, 2, 3, 4, 5, 6, 7, 8, 10};
  const std::vector<Filter> filters = {
      {.weights = weights},
      {.weights = others},
      {.weights = weights, .second_weights = others},
      {.weights = weights, .anchor_y = 0},
      {.weights = weights, .anchor_x = 0},
      {.weights = weights, .scale = 2},
      {.weights = weights, .bias = 2},
      {.weights = weights, .opaque_input = 100},
      {.weights = weights, .opaque_output = 100},
  };
  std::vector<Filter2dPlan> plans;  // which hold their records
  expect_remembered_apart(filters.size(), [&](std::size_t i) {
    plans.emplace_back(context, problem_of("filter2d u8 h8w8c4r3s3"), filters[i]);
    return std::shared_ptr<const choice::PlanRecord>(std::shared_ptr<void>(), &plans.back().plan().record());
  });
}

TEST(Remembered, PlansUsedLongestAgoAreForgottenFirst) {
  const Problem problem = parse_problem(layer);
  const std::shared_ptr<const choice::PlanRecord> record =
      choice::make_record(cpu(), problem, problem.operation().task(problem, 1), {});
  choice::PlanMemory memory;
  memory.store("used", record);
  memory.store("unused", record);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_EQ(memory.find("used"), record) << i;
    memory.store(std::to_string(i), record);
  }
  EXPECT_EQ(memory.find("unused"), nullptr);
  EXPECT_EQ(memory.find("0"), nullptr);
  EXPECT_EQ(memory.find("4999"), record);
}

}  // namespace
}  // namespace omniconv
