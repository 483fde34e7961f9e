#include "checking/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "checking/judge.h"
#include "checking/own_failure.h"
#include "checking/prepare.h"
#include "checking/strips.h"
#include "checking/transfers.h"
#include "choice/choose.h"
#include "choice/plan_record.h"
#include "core/convert.h"
#include "omniconv/error.h"

namespace omniconv::checking {
namespace {

using operations::AnyTask;
using operations::DataKind;
using operations::Expected;
using operations::Operation;

// Terms of all sums that a sample looks at, so that long sums are sampled in seconds.
constexpr double most_terms = 2e8;

std::vector<std::int64_t> every_point(const ArraySpec& array) {
  std::vector<std::int64_t> points(static_cast<std::size_t>(array.elements()));
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = static_cast<std::int64_t>(i);
  return points;
}

double largest_magnitude(DataType type, std::span<const std::byte> data) {
  double largest = 0;
  for (std::size_t at = 0; at < data.size(); at += static_cast<std::size_t>(size_of(type)))
    largest = std::max(largest, std::fabs(load_element(type, data.data() + at)));
  return largest;
}

// Scalars, which are then not what they are by default. Halves and turned signs are exact.
constexpr double checked_scalar = -0.5;

// One kind of data in all arrays, and what the outputs should be.
class Trial {
 public:
  Trial(const Operation& operation, const AnyTask& task, std::vector<ArraySpec> arrays, DataKind kind,
        const VerifyOptions& options)
      : operation_(operation),
        task_(task),
        arrays_(std::move(arrays)),
        scalar_specs_(operation.scalars(task)),
        kind_(kind),
        options_(options) {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      data_.emplace_back();
      if (arrays_[i].role != ArrayRole::out) {
        data_[i].resize(static_cast<std::size_t>(arrays_[i].bytes()));
        operation.fill(task, i, kind, options.seed * 16 + (kind == DataKind::integers ? 8 : 0) + i, data_[i]);
      }
      pointers_.push_back(data_[i].data());
    }
    scalars_.assign(scalar_specs_.size(), checked_scalar);
    for (const std::size_t i : operation.factors(task))
      largest_product_ *= largest_magnitude(arrays_[i].type, data_[i]);
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if (arrays_[i].role != ArrayRole::in) expect(i);
  }

  void check(const Context& context, const Plan& plan, VerifyResult& result) const {
    std::vector<std::vector<std::byte>> outputs;
    if (options_.strip_rows > 0)
      outputs.push_back(run_in_strips(context, plan, data_[0], options_.strip_rows, result));
    else
      outputs = run(context, plan, result);
    if (result.status == Status::failed) return;
    double largest = result.error;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Output& output = outputs_[i];
      const ArraySpec& array = arrays_[output.array];
      const Judge judge(operation_, task_, array, kind_, plan.record().bound, largest_product_);
      result.error = 0;
      result.bound = judge.bound();
      const std::int64_t size = size_of(array.type);
      for (std::size_t j = 0; j < output.points.size() && result.status != Status::failed; ++j)
        judge.check(output.points[j], output.expected[j], outputs[i].data() + output.points[j] * size, result);
      largest = std::max(largest, result.error);
    }
    result.error = largest;
  }

  // Too few of what is expected differ from zero for a comparison to mean anything.
  bool is_mostly_zero() const {
    if (options_.may_be_zero) return false;
    std::int64_t zeros = 0, sums = 0;
    for (const Output& output : outputs_)
      for (const Expected& one : output.expected) {
        if (one.exact || one.magnitude == 0) continue;
        ++sums;
        zeros += one.value == 0;
      }
    return sums > 16 && zeros * 2 > sums;
  }

 private:
  struct Output {
    std::size_t array;
    std::vector<std::int64_t> points;
    std::vector<Expected> expected;
  };

  void expect(std::size_t array) {
    Output output{array, {}, {}};
    const double longest = std::max(operation_.figures(task_).longest_sum, 1.0);
    const auto most = static_cast<std::int64_t>(std::max(64.0, most_terms / longest));
    const std::int64_t samples = std::min(options_.samples, most);
    output.points = options_.sampled && samples < arrays_[array].elements()
                        ? operation_.sample(task_, arrays_[array], samples, options_.seed)
                        : every_point(arrays_[array]);
    output.expected.resize(output.points.size());
    operation_.expect(task_, array, pointers_, scalars_, output.points, output.expected);
    outputs_.push_back(std::move(output));
  }

  // The outputs; `result` fails where anything else was written.
  std::vector<std::vector<std::byte>> run(const Context& context, const Plan& plan, VerifyResult& result) const {
    Transfers transfers(context);
    std::vector<NamedOperand> operands;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const std::byte* const data = arrays_[i].role == ArrayRole::out ? nullptr : data_[i].data();
      operands.push_back({arrays_[i].name, {transfers.put(data, arrays_[i].bytes(), guard_bytes), guard_bytes}});
    }
    std::vector<NamedOperand> given = operands;
    prepare(plan, transfers.queue(), given, [&](std::int64_t bytes) { return transfers.put_before_guard(bytes); });
    const Buffer workspace = transfers.put_before_guard(plan.workspace_bytes());
    std::vector<NamedScalar> scalars;
    for (std::size_t i = 0; i < scalars_.size(); ++i) scalars.push_back({scalar_specs_[i].name, scalars_[i]});
    plan.run(transfers.queue(), given, workspace, scalars).wait();

    if (!transfers.is_end_intact(workspace)) fail("wrote behind the workspace", result);
    for (const NamedOperand& array : given)
      if (array.operand.format && !transfers.is_end_intact(array.operand.buffer))
        fail(fmt::format("wrote behind the prepared {}", array.name), result);
    std::vector<std::vector<std::byte>> outputs;
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const Buffer& buffer = operands[i].operand.buffer;
      if (arrays_[i].role == ArrayRole::in) {
        if (!transfers.holds(buffer, data_[i])) fail("changed " + arrays_[i].name, result);
        continue;
      }
      if (!transfers.are_guards_intact(buffer)) fail("wrote outside " + arrays_[i].name, result);
      outputs.push_back(transfers.get(buffer, guard_bytes, arrays_[i].bytes()));
    }
    return outputs;
  }

  static void fail(const std::string& reason, VerifyResult& result) {
    if (result.status != Status::failed) result.reason = reason;
    result.status = Status::failed;
  }

  const Operation& operation_;
  const AnyTask& task_;
  std::vector<ArraySpec> arrays_;
  std::vector<operations::ScalarSpec> scalar_specs_;
  DataKind kind_;
  const VerifyOptions& options_;
  std::vector<std::vector<std::byte>> data_;  // of inputs, and of outputs that are added to
  std::vector<const std::byte*> pointers_;
  std::vector<double> scalars_;
  std::vector<Output> outputs_;
  double largest_product_ = 1;  // of factors
};

std::string unit_of(const operations::ErrorBound& bound) {
  return bound.exact ? "stored values" : fmt::format("2^-{} * {}", bound.f64 ? 52 : 23, bound.norm);
}

VerifyResult verify_one(const Context& context, const Problem& problem, const AnyTask& task,
                        const std::vector<std::unique_ptr<Trial>>& trials, const SolverOptions& options) {
  VerifyResult result{.solver = options.solver};
  const auto start = std::chrono::steady_clock::now();
  const Plan plan(choice::make_record(context, problem, task, options));
  result.plan_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.compile_seconds = plan.compile_seconds();
  result.unit = unit_of(plan.record().bound);
  result.tuning = plan.record().tuning.to_text();
  for (const std::unique_ptr<Trial>& trial : trials) {
    trial->check(context, plan, result);
    if (result.status == Status::failed) return result;
    if (trial->is_mostly_zero()) {
      result.status = Status::failed;
      result.reason = "most of what was expected is zero: the comparison means little; choose another --seed";
      return result;
    }
  }
  return result;
}

void verify_task(const Context& context, const Problem& problem, const AnyTask& task, const VerifyOptions& options,
                 const std::function<void(const VerifyResult&)>& report) {
  const Operation& operation = problem.operation();
  SolverOptions choice = options.solver;
  const bool all = choice.solver == "all";
  if (all) choice.solver = "auto";
  std::vector<choice::Considered> candidates = choice::consider(operation, task, context.impl(), choice);
  if (!all && !candidates.front().serves()) choice::choose(operation, task, problem, context.impl(), choice);  // throws
  if (!all) candidates.erase(candidates.begin() + 1, candidates.end());
  std::vector<std::unique_ptr<Trial>> trials;
  for (const choice::Considered& candidate : candidates) {
    const std::string id(candidate.solver->id());
    if (!candidate.serves()) {
      if (!all || operations::is_for(id, context.impl()->kind()))
        report({.solver = id, .status = Status::refused, .reason = candidate.reason});
      continue;
    }
    if (trials.empty())
      for (const DataKind kind : operation.data_kinds(task))
        trials.push_back(std::make_unique<Trial>(operation, task, operation.arrays(problem), kind, options));
    choice.solver = id;
    report(made_or_failed(VerifyResult{.solver = id}, all,
                          [&] { return verify_one(context, problem, task, trials, choice); }));
  }
}

}  // namespace

std::string_view name(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::refused: return "refused";
    case Status::failed: return "failed";
  }
  return "?";
}

void verify(const Context& context, const Problem& problem, const VerifyOptions& options,
            const std::function<void(const VerifyResult&)>& report) {
  validate(problem);
  verify_task(context, problem, problem.operation().task(problem, options.seed), options, report);
}

std::vector<VerifyResult> verify(const Context& context, const Problem& problem, const VerifyOptions& options) {
  std::vector<VerifyResult> results;
  verify(context, problem, options, [&](const VerifyResult& result) { results.push_back(result); });
  return results;
}

std::vector<VerifyResult> verify(const Context& context, const Problem& problem, const AnyTask& task,
                                 const VerifyOptions& options) {
  std::vector<VerifyResult> results;
  verify_task(context, problem, task, options, [&](const VerifyResult& result) { results.push_back(result); });
  return results;
}

}  // namespace omniconv::checking
