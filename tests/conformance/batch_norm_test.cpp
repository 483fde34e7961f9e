// batch_norm: every solver of the CPU against the definition, exact channels, large means, gradients against finite
// differences, cuts of long channels; the operation's bad input.
#include "omniconv/batch_norm.h"

#include <hwy/targets.h>

#include <limits>

#include "../error_testing.h"
#include "../list_testing.h"
#include "batch_norm_testing.h"
#include "matrix_testing.h"

namespace omniconv::batch_norm_tests {
namespace {

constexpr const char* direct = "batch_norm/direct/cpu.1";
constexpr const char* norm_solvers[] = {direct, "batch_norm/double/cpu.1"};

TEST(BatchNorm, EveryPassTypeAndLayoutAtAnyInstructionSet) {
  for (const std::int64_t target : {HWY_SCALAR, HWY_SSE4, HWY_AVX2, HWY_AVX3}) {
    if (target != HWY_SCALAR && (hwy::SupportedTargets() & HWY_TARGETS & target) == 0) continue;
    hwy::GetChosenTarget().Update(target);
    const Context context({.device = "cpu", .threads = 2});
    for (const char* const pass : {"fwd", "inference", "bwd", "fwd relu", "inference relu", "bwd relu"})
      for (const char* const layout : {"nchw", "nhwc"})
        for (const char* const type : {"f32", "f64", "f16", "bf16"})
          for (const char* const geometry :
               {"n2c3h7w9", "n2c1h1w1", "n33c65h1w1", "n4c16h8w8", "n3c2h31w29", "n40c2h3w1"})
            EXPECT_EQ(expect_exact_and_bounded(
                          context, parse_problem(fmt::format("batch_norm {} {} {} {}", pass, layout, type, geometry)),
                          {.solver = {.solver = "all"}, .sampled = true, .samples = 1000}),
                      2);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
}

TEST(BatchNorm, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  for (BatchNormProblem problem : listed_problems<BatchNormProblem>("batch_norms.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 16);
    problem.c = std::min<std::int64_t>(problem.c, 18);
    problem.h = std::min<std::int64_t>(problem.h, 40);
    EXPECT_EQ(
        expect_exact_and_bounded(context, problem, {.solver = {.solver = "all"}, .sampled = true, .samples = 200}), 2)
        << to_text(problem);
  }
}

TEST(BatchNorm, ChannelsOfTwoValuesAreExact) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const solver : norm_solvers) {
    for (const char* const text : {"n2c3h1w1", "n8c5h1w1", "nhwc n8c17h4w8", "n4c2h8w16", "n64c1h64w64", "f64 n4c3h4w8",
                                   "nhwc bf16 n16c3h2w2", "f16 n2c3h8w8", "relu n4c4h2w8"}) {
      const BatchNormProblem p = batch_norm(text);
      const std::int64_t side = p.layout == Layout::nhwc || p.h * p.w == 1 ? p.c : 1;
      expect_two_values(context, text, solver, [=](std::int64_t i) { return i / side % 2 != 0; });
      // Images of one value each.
      expect_two_values(context, text, solver, [&](std::int64_t i) { return i / (p.c * p.h * p.w) % 2 != 0; });
    }
  }
}

TEST(BatchNorm, DeviationsBesideLargeMeans) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const solver : norm_solvers)
    for (const char* const text : {"n8c3h16w17", "nhwc n8c19h16w17", "n700c5h1w1", "n9c1h200w100"})
      expect_deviations_beside_large_means(context, text, solver);
}

TEST(BatchNorm, YIsTheSameBackward) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const text : {"n8c3h16w17", "nhwc n8c19h16w17", "n70c5h1w1", "f64 n3c4h9w9"})
    expect_same_y_backward(context, text, direct);
}

// Of sum(r * y), by central differences in f64. A channel's y has third derivatives of about the deviation to the minus
// third, which is below 8 here, times the weights r; a step h leaves h^2 / 6 of them.
TEST(BatchNorm, GradientsAreThoseOfFiniteDifferences) {
  const Context context({.device = "cpu", .threads = 1});
  constexpr double step = 0x1p-13;
  for (const char* const text : {"f64 n3c2h2w3", "f64 nhwc n2c3h3w2", "f64 relu n3c2h2w3", "f64 n5c3h1w1"}) {
    const BatchNormProblem forward = batch_norm(text);
    BatchNormProblem backward = forward;
    backward.pass = BatchNormProblem::Pass::backward;
    Values given;
    double weights = 0;
    for (std::int64_t i = 0; i < elements_of(forward); ++i) {
      given["x"].push_back(std::sin(static_cast<double>(i) * 1.7) + 0.3);
      given["dy"].push_back(std::cos(static_cast<double>(i) * 0.9));
      weights += std::fabs(given["dy"].back());
    }
    for (std::int64_t c = 0; c < forward.c; ++c) {
      given["gamma"].push_back(1.25 - static_cast<double>(c)), given["beta"].push_back(0.41);
      given["running_mean"].push_back(0), given["running_var"].push_back(1);
    }
    for (const char* const solver : norm_solvers) {
      const SolverOptions options{.solver = solver};
      const Values made = result_of(context, forward, options, given);
      given["mean"] = made.at("mean"), given["invstd"] = made.at("invstd");
      const Values found = result_of(context, backward, options, given);
      const auto sum_with = [&](const std::string& name, std::size_t i, double change) {
        Values changed = given;
        changed[name][i] += change;
        const Values y = result_of(context, forward, options, changed);
        double sum = 0;
        for (std::size_t k = 0; k < given["dy"].size(); ++k) sum += given["dy"][k] * y.at("y")[k];
        return sum;
      };
      for (const char* const name : {"x", "gamma", "beta"})
        for (std::size_t i = 0; i < given[name].size(); ++i) {
          const double expected = (sum_with(name, i, step) - sum_with(name, i, -step)) / (2 * step);
          EXPECT_NEAR(found.at("d" + std::string(name))[i], expected, step * step * 8 * weights)
              << text << ' ' << solver << ' ' << name << i;
        }
    }
  }
}

// Channels that are cut into pieces, and are not where there is no workspace; the bits do not depend on threads.
TEST(BatchNorm, LongChannelsAreCut) {
  for (const char* const text : {"n9c2h200w201", "nhwc n9c3h100w101", "n70000c2h1w1", "bwd relu n9c2h200w201",
                                 "bwd nhwc n9c3h100w101", "bwd n9000c70h1w1"}) {
    const BatchNormProblem problem = batch_norm(text);
    Values given;
    for (const ArraySpec& array : arrays_of(problem)) {
      std::vector<double>& values = given[array.name];
      for (std::int64_t i = 0; i < array.elements(); ++i)
        values.push_back(static_cast<double>(static_cast<float>(i * 2654435761 % 1000) / 1000 + 0.3f));
    }
    std::vector<Values> results;
    for (const int threads : {1, 2, 3}) {
      const Context context({.device = "cpu", .threads = threads});
      EXPECT_GT(BatchNormPlan(context, problem).workspace_bytes(), 0) << text;
      results.push_back(result_of(context, problem, {}, given));
      EXPECT_EQ(results.back(), results.front()) << text << ' ' << threads;
    }
    const Context context({.device = "cpu", .threads = 2});
    const SolverOptions none{.max_workspace_bytes = 0};
    EXPECT_EQ(BatchNormPlan(context, problem, none).workspace_bytes(), 0);
    EXPECT_EQ(BatchNormPlan(context, problem, none).solver(), direct);
    EXPECT_EQ(expect_exact_and_bounded(
                  context, problem,
                  {.solver = {.solver = direct, .max_workspace_bytes = 0}, .sampled = true, .samples = 500}),
              1);
    EXPECT_EQ(
        expect_exact_and_bounded(context, problem, {.solver = {.solver = direct}, .sampled = true, .samples = 500}), 1);
  }
}

TEST(BatchNorm, ChannelsOfOneNumber) {
  const Context context({.device = "cpu", .threads = 1});
  Values given = {{"x", std::vector<double>(24, 0.375)},
                  {"gamma", {3, 4}},
                  {"beta", {5, -6}},
                  {"running_mean", {0, 0}},
                  {"running_var", {1, 1}}};
  for (const char* const solver : norm_solvers)
    for (const char* const text : {"n3c2h2w2", "nhwc n3c2h2w2"}) {
      const Values found = result_of(context, batch_norm(text), {.solver = solver}, given, {.epsilon = 0x1p-16});
      EXPECT_EQ(found.at("mean"), (std::vector<double>{0.375, 0.375})) << solver;
      EXPECT_EQ(found.at("invstd"), (std::vector<double>{256, 256})) << solver;
      for (std::int64_t i = 0; i < 24; ++i)
        EXPECT_EQ(found.at("y")[static_cast<std::size_t>(i)], channel_at(batch_norm(text), i) == 0 ? 5 : -6) << solver;
    }
}

// A channel that holds no number is NaN, through relu too; others do not notice.
TEST(BatchNorm, NumbersThatAreNone) {
  const Context context({.device = "cpu", .threads = 1});
  const double endless = std::numeric_limits<double>::infinity(), nothing = std::numeric_limits<double>::quiet_NaN();
  for (const char* const solver : norm_solvers)
    for (const double strange : {nothing, endless, -endless})
      for (const std::int64_t place : {0, 2, 9})  // of channel 0: its first element, another one, its last
        for (const char* const text : {"relu n1c3h2w5", "relu nhwc n1c3h2w5"}) {
          const BatchNormProblem problem = batch_norm(text);
          Values given = {
              {"gamma", {1, 1, 1}}, {"beta", {0, 0, 0}}, {"running_mean", {0, 0, 0}}, {"running_var", {1, 1, 1}}};
          for (int i = 0; i < 30; ++i) given["x"].push_back(i * 7 % 11);
          given["x"][static_cast<std::size_t>(problem.layout == Layout::nhwc ? place * 3 : place)] = strange;
          const Values found = result_of(context, problem, {.solver = solver}, given);
          EXPECT_FALSE(std::isfinite(found.at("mean")[0])) << solver;
          for (const char* const name : {"running_var", "invstd"}) EXPECT_TRUE(std::isnan(found.at(name)[0])) << solver;
          for (std::int64_t i = 0; i < 30; ++i)
            EXPECT_EQ(std::isnan(found.at("y")[static_cast<std::size_t>(i)]), channel_at(problem, i) == 0)
                << solver << ' ' << text << ' ' << strange << ' ' << place << ' ' << i;
        }
}

TEST(BatchNorm, MomentaMayChangeInARecording) {
  const Context context({.device = "cpu", .threads = 1});
  const BatchNormPlan plan(context, batch_norm("n2c1h1w1"));
  OnDevice arrays(context, plan,
                  {{"x", {1, 3}}, {"gamma", {1}}, {"beta", {0}}, {"running_mean", {0}}, {"running_var", {0}}});
  arrays.run().momentum = Scalar::changing(1);
  Sequence sequence = context.make_sequence();
  plan.append(sequence, arrays.run());
  const Recording recording = context.record(std::move(sequence));
  recording.replay(arrays.queue()).wait();
  EXPECT_EQ(arrays.values().at("running_mean"), std::vector<double>{2});
  EXPECT_EQ(arrays.values().at("running_var"), std::vector<double>{2});
  arrays.run().momentum.set(0.5);
  recording.replay(arrays.queue()).wait();
  EXPECT_EQ(arrays.values().at("running_mean"), std::vector<double>{2});
  arrays.run().momentum.set(-1);
  recording.replay(arrays.queue()).wait();
  EXPECT_EQ(arrays.values().at("running_mean"), std::vector<double>{2});
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(BatchNorm, BadInput) {
  const auto refusal = [](const std::string& text) {
    return error_of([&] { batch_norm(text); }, ErrorKind::bad_input);
  };
  expect_part(refusal("n1c2h3"), "w (columns)");
  expect_part(refusal("n0c2h3w4"), "n is 0");
  expect_part(refusal("u8 n1c2h3w4"), "u8");
  expect_part(refusal("bwd_data n1c2h3w4"), "bwd_data");
  expect_part(refusal("n9223372036854775807c2h3w4"), "the input");
  expect_part(refusal("n1c2h1w1"), "n * h * w is 1: must be at least 2");
  expect_part(refusal("bwd n1c2h1w1"), "inference takes one");
  EXPECT_EQ(to_text(batch_norm("inference n1c2h1w1")), "batch_norm inference n1c2h1w1");
  EXPECT_EQ(to_text(batch_norm("relu nhwc bf16 bwd w4h3c2n1 \"a\"")), "batch_norm bwd bf16 nhwc relu n1c2h3w4 \"a\"");
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const BatchNormPlan plan(context, batch_norm("n2c3h4w5"));
  OnDevice arrays(context, plan, {});
  BatchNormRun run = arrays.run();
  run.mean = {};
  expect_part(error_of([&] { plan.run(queue, run); }, ErrorKind::bad_input), "mean");
  run = arrays.run(), run.y = run.x;
  expect_part(error_of([&] { plan.run(queue, run); }, ErrorKind::bad_input), "overlap");
  run = arrays.run(), run.beta.offset_bytes = 4;
  expect_part(error_of([&] { plan.run(queue, run); }, ErrorKind::bad_input), "beta");
}

}  // namespace
}  // namespace omniconv::batch_norm_tests
