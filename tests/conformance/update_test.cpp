// update: every solver of the CPU against the definition, to the bit; PyTorch's own steps; values that are no ordinary
// numbers; the operation's bad input.
#include "omniconv/update.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>

#include "../error_testing.h"
#include "../list_testing.h"
#include "conformance.h"
#include "matrix_testing.h"
#include "operations/update/update.h"
#include "update_testing.h"

namespace omniconv::update_tests {
namespace {

constexpr const char* direct = "update/direct/cpu.1";
constexpr const char* rules[] = {"sgd", "nesterov", "adam"};
constexpr const char* types[] = {"f32", "f64", "f16", "bf16"};

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

TEST(Update, EveryRuleAndTypeAtAnyInstructionSet) {
  for_instruction_sets([] {
    const Context context({.device = "cpu", .threads = 2});
    for (const char* const rule : rules)
      for (const char* const type : types)
        for (const char* const rest : {"n1", "scaled n33", "guarded n1000", "scaled guarded n9001"})
          EXPECT_EQ(expect_exact_and_bounded(context, parse_problem(fmt::format("update {} {} {}", rule, type, rest)),
                                             {.solver = {.solver = "all"}}),
                    2);
  });
}

TEST(Update, BitsAreThoseOfTheDefinition) {
  for_instruction_sets([] {
    const Context context({.device = "cpu", .threads = 2});
    for (const char* const rule : rules)
      for (const char* const type : types)
        for (const std::int64_t n : {1, 2, 3, 5, 31, 33, 127, 129, 1000, 4097, 12289}) {
          UpdateProblem problem = update(fmt::format("{} {} n1", rule, type));
          problem.n = n;
          problem.scaled = n % 2 == 1;
          problem.guarded = n % 3 == 1;
          const UpdateValues values = some_values(problem), expected = defined(problem, {}, values);
          expect_same(stepped(context, problem, direct, {}, values), expected, to_text(problem));
          expect_same(stepped(context, problem, direct, {}, values, {1, 2, 3, 1, 5}), expected,
                      to_text(problem) + ", placed");
        }
  });
}

// Three threads, and one.
TEST(Update, BitsDoNotDependOnThreads) {
  const Context one({.device = "cpu", .threads = 1}), three({.device = "cpu", .threads = 3});
  for (const char* const text : {"adam f16 guarded n70001", "nesterov n70001"}) {
    const UpdateValues values = some_values(update(text));
    expect_same(stepped(three, update(text), direct, {}, values), stepped(one, update(text), direct, {}, values), text);
  }
}

// torch.optim.SGD (torch/optim/sgd.py, _single_tensor_sgd) without dampening.
class TorchSgd {
 public:
  TorchSgd(double rate, double momentum, double weight_decay, bool nesterov)
      : rate_(rate), momentum_(momentum), weight_decay_(weight_decay), nesterov_(nesterov) {}
  void step(double& parameter, double gradient) {
    gradient += weight_decay_ * parameter;
    buffer_ = is_first_ ? gradient : momentum_ * buffer_ + gradient;
    is_first_ = false;
    parameter -= rate_ * (nesterov_ ? gradient + momentum_ * buffer_ : buffer_);
  }

 private:
  double rate_, momentum_, weight_decay_, buffer_ = 0;
  bool nesterov_, is_first_ = true;
};

// torch.optim.Adam (torch/optim/adam.py, _single_tensor_adam) without amsgrad.
class TorchAdam {
 public:
  TorchAdam(double rate, double beta1, double beta2, double epsilon, double weight_decay)
      : rate_(rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon), weight_decay_(weight_decay) {}
  void step(double& parameter, double gradient) {
    ++steps_;
    gradient += weight_decay_ * parameter;
    average_ += (1 - beta1_) * (gradient - average_);                                 // lerp_
    square_average_ = beta2_ * square_average_ + (1 - beta2_) * gradient * gradient;  // addcmul_
    const double bias_correction1 = 1 - std::pow(beta1_, steps_), bias_correction2 = 1 - std::pow(beta2_, steps_);
    const double denominator = std::sqrt(square_average_) / std::sqrt(bias_correction2) + epsilon_;
    parameter -= rate_ / bias_correction1 * average_ / denominator;  // addcdiv_
  }

 private:
  double rate_, beta1_, beta2_, epsilon_, weight_decay_, average_ = 0, square_average_ = 0;
  int steps_ = 0;
};

// Ten steps from moments of 0. Gradients are of magnitude 1/4 to 5/4, parameters and so all terms at most 2, Adam's
// directions at most 2, too. A step adds at most 3 units to m, or 6 of 2 to w and v; what m is off grows to at most
// 1 / (1 - momentum) = 10 steps of it, and reaches w times the rate, which is 0.1, ten times. So 10 * (6 * 2 + 3 * 2 *
// 10) units of the type suffice for both sides of w, and for what 1 - beta^t is off.
TEST(Update, TenStepsAreThoseOfPyTorch) {
  const Context context({.device = "cpu", .threads = 1});
  constexpr std::int64_t n = 67;
  const auto gradient = [](std::int64_t i, int step) {
    const double value = 0.75 + 0.5 * std::sin(static_cast<double>(i * 7 + step * 3));
    return rounded(DataType::f32, (i + step) % 3 == 0 ? -value : value);
  };
  for (const char* const rule : rules)
    for (const char* const type : {"f64", "f32"})
      for (const char* const solver : {direct, "update/double/cpu.1"}) {
        UpdateProblem problem = update(fmt::format("{} {} n67", rule, type));
        UpdateScalars scalars{.rate = 0.1, .l1 = 0, .l2 = 0.05, .clip = std::numeric_limits<double>::infinity()};
        UpdateValues values = some_values(problem);
        std::fill(values.m.begin(), values.m.end(), 0);
        std::fill(values.v.begin(), values.v.end(), 0);
        std::vector<double> expected = values.w;
        std::vector<TorchSgd> sgd(n, {0.1, 0.9, 0.05, problem.rule == Rule::nesterov});
        std::vector<TorchAdam> adam(n, {0.1, 0.9, 0.999, 1e-8, 0.05});
        UpdateOnDevice on_device(context, problem, values);
        const UpdatePlan plan(context, problem, {.solver = solver});
        const double unit = problem.type == DataType::f64 ? 0x1p-52 : 0x1p-23;
        for (int step = 1; step <= 10; ++step) {
          std::vector<double> g;
          for (std::int64_t i = 0; i < n; ++i) g.push_back(gradient(i, step));
          on_device.put_gradient(g);
          scalars.step = step;
          on_device.step(plan, scalars);
          const UpdateValues now = on_device.values();
          for (std::size_t i = 0; i < g.size(); ++i) {
            if (problem.rule == Rule::adam)
              adam[i].step(expected[i], g[i]);
            else
              sgd[i].step(expected[i], g[i]);
            EXPECT_NEAR(now.w[i], expected[i], 720 * unit) << to_text(problem) << ", step " << step << ", " << i;
          }
        }
      }
}

// Of a gradient that stays 1: sums of 1, 1 + 1/2, 1 + 1/2 + 1/4, ... times the rate, which fp32 holds exactly; and
// Adam's moments are those of means, so that each step is rate / (1 + epsilon).
TEST(Update, ConstantGradientsHaveClosedForms) {
  const Context context({.device = "cpu", .threads = 1});
  for (const char* const rule : rules) {
    const UpdateProblem problem = update(fmt::format("{} n5", rule));
    UpdateValues values{.g = std::vector<double>(5, 1), .w = {-2, -1, 0, 1, 2}, .m = std::vector<double>(5, 0)};
    values.v = values.m;
    UpdateOnDevice on_device(context, problem, values);
    const UpdatePlan plan(context, problem, {.solver = direct});
    UpdateScalars scalars{.rate = 0.125, .l1 = 0, .l2 = 0, .momentum = 0.5, .epsilon = 0x1p-20};
    double momentum = 0, sum = 0;
    for (int step = 1; step <= 8; ++step) {
      scalars.step = step;
      on_device.step(plan, scalars);
      momentum = 2 - std::ldexp(1.0, 1 - step);
      sum += problem.rule == Rule::sgd        ? momentum
             : problem.rule == Rule::nesterov ? 1 + momentum / 2
                                              : 1 / (1 + 0x1p-20);
      const UpdateValues now = on_device.values();
      for (std::size_t i = 0; i < now.w.size(); ++i) {
        const double expected = values.w[i] - 0.125 * sum;
        if (problem.rule == Rule::adam)
          EXPECT_NEAR(now.w[i], expected, 40 * step * 0x1p-23) << step;  // 6 units of terms that are at most 4
        else
          EXPECT_EQ(now.w[i], expected) << rule << step;
      }
    }
  }
}

TEST(Update, StrangeGradients) {
  const Context context({.device = "cpu", .threads = 2});
  for (const DataType type : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16})
    expect_strange_gradients(context, direct, type);
}

TEST(Update, GradientsThatAreNotFiniteStopNoOthersOfTheirStep) {
  for_instruction_sets([] {
    const Context context({.device = "cpu", .threads = 2});
    for (const DataType type : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16})
      for (const char* const solver : {direct, "update/double/cpu.1"})
        expect_others_change(context, {.solver = solver}, type);
  });
}

// The reference stops where the others do, and clips infinities.
TEST(Update, TheReferenceStopsToo) {
  const Context context({.device = "cpu", .threads = 1});
  const UpdateProblem problem = update("adam guarded bf16 n200");
  UpdateValues values = some_values(problem);
  values.g[150] = std::numeric_limits<double>::infinity();
  const UpdateValues stopped = stepped(context, problem, "update/double/cpu.1", {}, values);
  EXPECT_EQ(stopped.stop, 3);
  EXPECT_EQ(stopped.w[150], values.w[150]);
  EXPECT_NE(stopped.w[149], values.w[149]);
  UpdateProblem free = update("n200");
  values = some_values(free);
  values.g[150] = -std::numeric_limits<double>::infinity();
  const UpdateValues after = stepped(context, free, "update/double/cpu.1", {.clip = 0.5}, values);
  EXPECT_TRUE(std::isfinite(after.w[150]));
  EXPECT_NEAR(after.m[150], 0.9 * values.m[150] - 0.5 + 0.07 * values.w[150], 0.004);  // and the 0.003 of l1
}

// A product of finite numbers may leave the range.
TEST(Update, ScaledGradientsThatOverflowStop) {
  const Context context({.device = "cpu", .threads = 1});
  for (const char* const solver : {direct, "update/double/cpu.1"}) {
    const UpdateProblem problem = update("scaled guarded n40");
    UpdateValues values = some_values(problem);
    values.factor = 0x1p100;
    EXPECT_EQ(stepped(context, problem, solver, {}, values).stop, 0) << solver;
    values.g[39] = 0x1p30;
    EXPECT_EQ(stepped(context, problem, solver, {}, values).stop, 3) << solver;
    EXPECT_EQ(stepped(context, problem, solver, {}, values).w[39], values.w[39]) << solver;
    EXPECT_NE(stepped(context, problem, solver, {}, values).w[38], values.w[38]) << solver;
  }
}

TEST(Update, RecordedStepsReadChangingScalars) {
  const Context context({.device = "cpu", .threads = 2});
  for (const char* const text : {"n500", "nesterov f16 n500", "adam n500", "adam f64 scaled guarded n500"})
    expect_recorded_steps(context, update(text));
}

TEST(Update, ComplementsFollowTheirScalars) {
  EXPECT_EQ(Scalar::complement(0.999).value(), 1 - 0.999);
  EXPECT_FALSE(Scalar::complement(0.25).is_changing());
  Scalar beta = Scalar::changing(0.75);
  Scalar complement = Scalar::complement(beta);
  EXPECT_TRUE(complement.is_changing());
  EXPECT_EQ(complement.value(), 0.25);
  beta.set(0.5);
  EXPECT_EQ(complement.value(), 0.5);
  EXPECT_EQ(Scalar::complement(complement).value(), 0.5);
  const std::string error = error_of([&] { complement.set(1); }, ErrorKind::bad_input);
  EXPECT_NE(error.find("the complement of another cannot be set: set the other one"), std::string::npos) << error;
}

TEST(Update, CorrectionsAreThoseOfMeans) {
  EXPECT_DOUBLE_EQ(adam_corrections(1).first, 0.1);
  EXPECT_DOUBLE_EQ(adam_corrections(1).second, 1 - 0.999);
  EXPECT_DOUBLE_EQ(adam_corrections(3, 0.5, 0.25).first, 0.875);
  EXPECT_DOUBLE_EQ(adam_corrections(3, 0.5, 0.25).second, 1 - 1.0 / 64);
  EXPECT_EQ(adam_corrections(2, 0, 0).first, 1);
  EXPECT_EQ(adam_corrections(std::int64_t{1} << 40).second, 1);
  EXPECT_NEAR(adam_corrections(1, 0.9, 1 - 0x1p-40).second, 0x1p-40, 0x1p-90);
  const auto refusal = [](std::int64_t step, double beta1, double beta2) {
    return error_of([&] { adam_corrections(step, beta1, beta2); }, ErrorKind::bad_input);
  };
  EXPECT_NE(refusal(0, 0.9, 0.9).find("step is 0: must be at least 1"), std::string::npos);
  EXPECT_NE(refusal(1, 1, 0.9).find("a beta is 1: must be from 0 to less than 1"), std::string::npos);
  EXPECT_NE(refusal(1, 0.9, -0.5).find("a beta is -0.5"), std::string::npos);
  EXPECT_NE(refusal(1, 0.9, std::nan("")).find("a beta is nan"), std::string::npos);
}

// The list, smaller, by every solver, with guards.
TEST(Update, TheListByEverySolver) {
  const Context context({.device = "cpu", .threads = 2});
  for (UpdateProblem problem : listed_problems<UpdateProblem>("updates.txt")) {
    problem.n = std::min<std::int64_t>(problem.n, 20'011);
    EXPECT_EQ(expect_exact_and_bounded(context, problem,
                                       {.solver = {.solver = "all"}, .sampled = instrumented, .samples = 256}),
              2);
  }
}

TEST(Update, RefusesWhatIsNone) {
  const auto refusal = [](const std::string& text) { return error_of([&] { update(text); }); };
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"n0", "n is 0: must be at least 1"},
      {"adam", "n (elements)"},
      {"tf32 n4", "column 8: found 'tf32'"},
      {"adagrad n4", "column 8: found 'adagrad'"},
      {"adams n4", "did you mean adam?"},
      {"sgd adam n4", "expected one rule, and 'sgd' was given before"},
      {"scaled scaled n4", "scaled"},
      {"n4c2", "c2"},
      {"f16 n576460752303423488", "the parameters"},
  };
  for (const auto& [text, part] : refused) EXPECT_NE(refusal(text).find(part), std::string::npos) << refusal(text);
  EXPECT_EQ(to_text(parse_problem("update sgd f32 n12 \"all layers\"")), "update n12 \"all layers\"");
  EXPECT_EQ(to_text(parse_problem("update guarded n7 bf16 adam scaled")), "update adam scaled guarded bf16 n7");
  EXPECT_EQ(to_text(parse_problem("update nesterov n7")), "update nesterov n7");
  const Context context({.device = "cpu", .threads = 1});
  UpdateProblem problem = update("n4");
  problem.rule = static_cast<Rule>(3);
  const std::string error = error_of([&] { UpdatePlan(context, problem); }, ErrorKind::bad_input);
  EXPECT_NE(error.find("rule is number 3: must be sgd, nesterov or adam"), std::string::npos) << error;
}

TEST(Update, RefusesArraysThatOverlapOrLack) {
  const Context context({.device = "cpu", .threads = 1});
  Queue queue = context.make_queue();
  const Buffer buffer = context.allocate(64), other = context.allocate(64);
  const auto refusal = [&](const char* text, const UpdateRun& run) {
    return error_of([&] { UpdatePlan(context, update(text)).run(queue, run); }, ErrorKind::bad_input);
  };
  const UpdateRun run{.g = {other}, .w = {buffer}, .m = {buffer, 12}};
  EXPECT_NE(refusal("n4", run).find("w and m overlap in memory"), std::string::npos);
  UpdateRun apart = run;
  apart.m.offset_bytes = 16;
  UpdatePlan(context, update("n4")).run(queue, apart).wait();
  EXPECT_NE(refusal("adam n4", apart).find("the buffer of v is missing"), std::string::npos);
  EXPECT_NE(refusal("f16 n4", apart).find("the buffer of copy is missing"), std::string::npos);
  EXPECT_NE(refusal("scaled n4", apart).find("the buffer of factor is missing"), std::string::npos);
  EXPECT_NE(refusal("guarded n4", apart).find("the buffer of stop is missing"), std::string::npos);
}

}  // namespace
}  // namespace omniconv::update_tests
