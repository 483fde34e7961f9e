// Runs of batch_norm with arrays as numbers: what tests of every device share.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "choice/plan_record.h"
#include "core/convert.h"
#include "omniconv/batch_norm.h"

namespace omniconv::batch_norm_tests {

inline BatchNormProblem batch_norm(const std::string& text) {
  return get<BatchNormProblem>(parse_problem("batch_norm " + text));
}

// Arrays of a problem by their names, as numbers that their types hold.
using Values = std::map<std::string, std::vector<double>>;

inline Operand& operand_of(BatchNormRun& run, const std::string& name) {
  const std::map<std::string, Operand*> all = {{"x", &run.x},
                                               {"gamma", &run.gamma},
                                               {"beta", &run.beta},
                                               {"y", &run.y},
                                               {"mean", &run.mean},
                                               {"invstd", &run.invstd},
                                               {"running_mean", &run.running_mean},
                                               {"running_var", &run.running_var},
                                               {"dy", &run.dy},
                                               {"dx", &run.dx},
                                               {"dgamma", &run.dgamma},
                                               {"dbeta", &run.dbeta}};
  return *all.at(name);
}

// A problem's arrays on a device, each `before` elements behind its buffer's begin. What is not given is -7.
class OnDevice {
 public:
  OnDevice(const Context& context, const BatchNormPlan& plan, const Values& given, std::int64_t before = 0)
      : queue_(context.make_queue()), arrays_(plan.plan().arrays()) {
    for (const ArraySpec& array : arrays_) {
      const std::int64_t size = size_of(array.type);
      Operand& operand = operand_of(run_, array.name);
      operand = {context.allocate((array.elements() + before) * size), before * size};
      const auto found = given.find(array.name);
      const std::vector<double> values =
          found == given.end() ? std::vector<double>(static_cast<std::size_t>(array.elements()), -7) : found->second;
      std::vector<std::byte> bytes(static_cast<std::size_t>(array.bytes()));
      for (std::size_t i = 0; i < values.size(); ++i)
        store_element(array.type, values[i], bytes.data() + static_cast<std::int64_t>(i) * size);
      queue_.upload(operand.buffer, operand.offset_bytes, bytes.data(), std::ssize(bytes)).wait();
    }
    run_.workspace = context.allocate(std::max<std::int64_t>(plan.workspace_bytes(), 1));
  }

  BatchNormRun& run() { return run_; }
  Queue& queue() { return queue_; }
  Values values() {
    Values values;
    for (const ArraySpec& array : arrays_) {
      const Operand& operand = operand_of(run_, array.name);
      std::vector<std::byte> bytes(static_cast<std::size_t>(array.bytes()));
      queue_.download(bytes.data(), operand.buffer, operand.offset_bytes, std::ssize(bytes)).wait();
      for (std::int64_t i = 0; i < array.elements(); ++i)
        values[array.name].push_back(load_element(array.type, bytes.data() + i * size_of(array.type)));
    }
    return values;
  }

 private:
  Queue queue_;
  std::vector<ArraySpec> arrays_;
  BatchNormRun run_;
};

struct Numbers {
  double epsilon = 1e-5, momentum = 0.1;
};
inline Values result_of(const Context& context, const BatchNormProblem& problem, const SolverOptions& options,
                        const Values& given, const Numbers& numbers = {}, std::int64_t before = 0) {
  const BatchNormPlan plan(context, problem, options);
  OnDevice arrays(context, plan, given, before);
  arrays.run().epsilon = numbers.epsilon, arrays.run().momentum = numbers.momentum;
  plan.run(arrays.queue(), arrays.run()).wait();
  return arrays.values();
}

inline std::int64_t elements_of(const BatchNormProblem& p) {
  return p.n * p.c * p.h * p.w;
}
inline std::size_t channel_at(const BatchNormProblem& p, std::int64_t place) {
  return static_cast<std::size_t>(place / (p.layout == Layout::nhwc ? 1 : p.h * p.w) % p.c);
}

// Channels of two values, 1 above and below 8 * c, as many of each: their variance is 1, and everything is exact where
// there are 2^k elements of a channel and epsilon is 0. `odd` says which value an element has.
template <typename Odd>
void expect_two_values(const Context& context, const std::string& text, const std::string& solver, const Odd& odd) {
  const BatchNormProblem problem = batch_norm(text);
  const std::string what = fmt::format("{} by {}", text, solver);
  Values given;
  for (std::int64_t i = 0; i < elements_of(problem); ++i)
    given["x"].push_back(8 * static_cast<double>(channel_at(problem, i)) + (odd(i) ? 1 : -1));
  for (std::int64_t c = 0; c < problem.c; ++c) {
    given["gamma"].push_back(c % 2 == 0 ? 2 : -0.5), given["beta"].push_back(static_cast<double>(c % 3));
    given["running_mean"].push_back(4), given["running_var"].push_back(3);
  }
  const Values found = result_of(context, problem, {.solver = solver}, given, {.epsilon = 0, .momentum = 0.25});
  const auto count = static_cast<double>(problem.n * problem.h * problem.w);
  for (std::size_t c = 0; c < static_cast<std::size_t>(problem.c); ++c) {
    const double mean = 8 * static_cast<double>(c);
    EXPECT_EQ(found.at("mean")[c], mean) << what;
    EXPECT_EQ(found.at("invstd")[c], 1) << what;
    EXPECT_EQ(found.at("running_mean")[c], 3 + mean / 4) << what;
    // Three products and a sum round.
    EXPECT_NEAR(found.at("running_var")[c], 2.25 + 0.25 * count / (count - 1), 4 * 0x1p-23) << what;
  }
  for (std::int64_t i = 0; i < elements_of(problem); ++i) {
    const std::size_t c = channel_at(problem, i);
    const double y = (odd(i) ? 1 : -1) * given["gamma"][c] + given["beta"][c];
    ASSERT_EQ(found.at("y")[static_cast<std::size_t>(i)], problem.relu ? std::max(y, 0.0) : y) << what << ' ' << i;
  }
}

// Of f32: the relative error of invstd does not grow with the mean, which is 2^20 deviations here.
inline void expect_deviations_beside_large_means(const Context& context, const std::string& text,
                                                 const std::string& solver) {
  const BatchNormProblem problem = batch_norm(text);
  Values given;
  std::vector<double> sum(static_cast<std::size_t>(problem.c), 0), squares = sum, distances = sum, first = sum;
  std::vector<bool> begun(sum.size(), false);
  const auto deviation = [](std::int64_t i) { return static_cast<double>(i * 2654435761 % 17) / 8 - 1; };
  for (std::int64_t i = 0; i < elements_of(problem); ++i) {
    const std::size_t c = channel_at(problem, i);
    given["x"].push_back(0x1p20 + deviation(i));
    if (!begun[c]) begun[c] = true, first[c] = deviation(i);
    sum[c] += deviation(i), squares[c] += deviation(i) * deviation(i);
    distances[c] += (deviation(i) - first[c]) * (deviation(i) - first[c]);
  }
  for (const char* const name : {"gamma", "beta", "running_mean", "running_var"})
    given[name] = std::vector<double>(sum.size(), 1);
  const BatchNormPlan plan(context, problem, {.solver = solver});
  const Values found = result_of(context, problem, {.solver = solver}, given, {.epsilon = 0});
  const auto& bound = plan.plan().record().bound;
  const auto count = static_cast<double>(problem.n * problem.h * problem.w);
  for (std::size_t c = 0; c < sum.size(); ++c) {
    const double variance = squares[c] / count - sum[c] / count * (sum[c] / count);
    const double units = (bound.chain / 2 + bound.constant) * (1 + 7 * distances[c] / count / variance);
    const double lost = 14 * distances[c] / count / variance * (bound.chain / 2 + bound.constant) * 0x1p-23;
    EXPECT_NEAR(found.at("invstd")[c] * std::sqrt(variance), 1, units * 0x1p-23 / (1 - lost)) << text << ' ' << solver;
    EXPECT_LT(units * 0x1p-23, 0.01);
  }
}

// dy passes exactly where the y of the forward pass is greater than 0, to the bit: of a dy of ones dbeta counts them.
inline void expect_same_y_backward(const Context& context, const std::string& text, const std::string& solver) {
  BatchNormProblem problem = batch_norm("relu " + text);
  Values given;
  for (std::int64_t i = 0; i < elements_of(problem); ++i)
    given["x"].push_back(static_cast<double>(static_cast<float>(i * 2654435761 % 1009) / 7 - 60));
  for (std::int64_t c = 0; c < problem.c; ++c) {
    given["gamma"].push_back(c % 2 == 0 ? 1.5 : -0.75), given["beta"].push_back(0.125 * static_cast<double>(c % 3 - 1));
    given["running_mean"].push_back(0), given["running_var"].push_back(1);
  }
  const Values forward = result_of(context, problem, {.solver = solver}, given);
  given["mean"] = forward.at("mean"), given["invstd"] = forward.at("invstd");
  given["dy"] = std::vector<double>(given["x"].size(), 1);
  std::vector<double> passed(static_cast<std::size_t>(problem.c), 0);
  for (std::int64_t i = 0; i < elements_of(problem); ++i)
    passed[channel_at(problem, i)] += forward.at("y")[static_cast<std::size_t>(i)] > 0;
  problem.pass = BatchNormProblem::Pass::backward;
  EXPECT_EQ(result_of(context, problem, {.solver = solver}, given).at("dbeta"), passed) << text << ' ' << solver;
}

}  // namespace omniconv::batch_norm_tests
