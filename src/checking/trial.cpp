#include "checking/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

#include "checking/judge.h"
#include "checking/prepare.h"
#include "checking/strips.h"
#include "checking/transfers.h"
#include "choice/plan_record.h"
#include "core/convert.h"

namespace omniconv::checking {
namespace {

using operations::AnyTask;
using operations::DataKind;
using operations::Expected;
using operations::Operation;

// Terms of all sums that a sample looks at, so that long sums are sampled in seconds.
constexpr double most_terms = 2e8;
// What one core adds up before another is asked.
constexpr double terms_of_a_part = 1e5;

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

void fail(const std::string& reason, VerifyResult& result) {
  if (result.status != Status::failed) result.reason = reason;
  result.status = Status::failed;
}

}  // namespace

Trial::Trial(const Operation& operation, const AnyTask& task, std::vector<ArraySpec> arrays, DataKind kind,
             const VerifyOptions& options, Host& host)
    : operation_(operation),
      task_(task),
      arrays_(std::move(arrays)),
      scalar_specs_(operation.scalars(task)),
      kind_(kind),
      options_(options),
      host_(host) {
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    data_.emplace_back();
    if (arrays_[i].role != ArrayRole::out) {
      data_[i] = host_.take(arrays_[i].bytes());
      operation.fill(task, i, kind, options.seed * 16 + (kind == DataKind::integers ? 8 : 0) + i, data_[i].bytes());
    }
    pointers_.push_back(data_[i].data());
  }
  for (const operations::ScalarSpec& scalar : scalar_specs_) scalars_.push_back(scalar.checked);
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if (arrays_[i].role != ArrayRole::in) expect(i);
}

void Trial::expect(std::size_t array) {
  const double longest = std::max(operation_.figures(task_).longest_sum, 1.0);
  const auto most = static_cast<std::int64_t>(std::max(64.0, most_terms / longest));
  const std::int64_t samples = std::min(options_.samples, most);
  Output output{array, !options_.sampled || samples >= arrays_[array].elements(), {}, {}};
  output.points =
      output.is_whole ? every_point(arrays_[array]) : operation_.sample(task_, arrays_[array], samples, options_.seed);
  output.expected.resize(output.points.size());
  host_.in_parts(static_cast<std::int64_t>(output.points.size()),
                 static_cast<std::int64_t>(std::ceil(terms_of_a_part / longest)),
                 [&](std::int64_t first, std::int64_t count) {
                   const auto from = static_cast<std::size_t>(first), so_many = static_cast<std::size_t>(count);
                   operation_.expect(task_, array, pointers_, scalars_, std::span(output.points).subspan(from, so_many),
                                     std::span(output.expected).subspan(from, so_many));
                 });
  outputs_.push_back(std::move(output));
}

double Trial::largest_product() {
  if (largest_product_) return *largest_product_;
  double product = 1;
  for (const std::size_t i : operation_.factors(task_)) {
    constexpr std::int64_t elements_of_a_part = 1 << 18;
    const std::int64_t size = size_of(arrays_[i].type);
    double largest = 0;
    std::mutex mutex;
    host_.in_parts(arrays_[i].elements(), elements_of_a_part, [&](std::int64_t first, std::int64_t count) {
      const double found = largest_magnitude(arrays_[i].type, data(i).subspan(static_cast<std::size_t>(first * size),
                                                                              static_cast<std::size_t>(count * size)));
      const std::lock_guard lock(mutex);
      largest = std::max(largest, found);
    });
    product *= largest;
  }
  return *(largest_product_ = product);
}

std::vector<Expected> Trial::expected_in_blocks(const Output& output, const operations::BlockExtents& tile) const {
  std::vector<Expected> expected = output.expected;
  const double longest = std::max(operation_.figures(task_).longest_sum, 1.0);
  host_.in_parts(static_cast<std::int64_t>(output.points.size()),
                 static_cast<std::int64_t>(std::ceil(terms_of_a_part / longest)),
                 [&](std::int64_t first, std::int64_t count) {
                   const auto from = static_cast<std::size_t>(first), so_many = static_cast<std::size_t>(count);
                   operation_.expect_in_blocks(task_, output.array, pointers_, tile,
                                               std::span(output.points).subspan(from, so_many),
                                               std::span(expected).subspan(from, so_many));
                 });
  return expected;
}

void Trial::check(const Context& context, const Plan& plan, VerifyResult& result) {
  std::vector<std::vector<std::byte>> outputs;
  if (options_.strip_rows > 0)
    outputs.push_back(run_in_strips(context, plan, result));
  else
    outputs = run(context, plan, result);
  if (result.status == Status::failed) return;
  const operations::ErrorBound& bound = plan.record().bound;
  double largest = result.error;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    const ArraySpec& array = arrays_[output.array];
    const Judge judge(operation_, task_, array, kind_, bound, bound.absolute > 0 ? largest_product() : 1);
    const std::vector<Expected> in_blocks =
        bound.tile.rows > 0 ? expected_in_blocks(output, bound.tile) : std::vector<Expected>();
    const std::vector<Expected>& expected = bound.tile.rows > 0 ? in_blocks : output.expected;
    result.error = 0;
    result.bound = judge.bound();
    const auto size = static_cast<std::size_t>(size_of(array.type));
    for (std::size_t j = 0; j < output.points.size() && result.status != Status::failed; ++j)
      judge.check(output.points[j], expected[j], outputs[i].data() + j * size, result);
    largest = std::max(largest, result.error);
  }
  result.error = largest;
}

bool Trial::is_mostly_zero() const {
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

std::vector<std::byte> Trial::run_in_strips(const Context& context, const Plan& plan, VerifyResult& result) const {
  Transfers transfers(context, host_);
  std::vector<std::byte> whole = checking::run_in_strips(transfers, plan, data(0), options_.strip_rows, result);
  const Output& output = outputs_.front();
  if (output.is_whole) return whole;
  const auto size = static_cast<std::size_t>(size_of(arrays_[output.array].type));
  std::vector<std::byte> elements(output.points.size() * size);
  for (std::size_t i = 0; i < output.points.size(); ++i)
    std::memcpy(elements.data() + i * size, whole.data() + static_cast<std::size_t>(output.points[i]) * size, size);
  return elements;
}

std::vector<std::vector<std::byte>> Trial::run(const Context& context, const Plan& plan, VerifyResult& result) const {
  Transfers transfers(context, host_);
  std::vector<NamedOperand> operands;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    const std::byte* const held = arrays_[i].role == ArrayRole::out ? nullptr : data_[i].data();
    operands.push_back({arrays_[i].name, {transfers.put(held, arrays_[i].bytes(), guard_bytes), guard_bytes}});
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
      if (!transfers.holds(buffer, data(i))) fail("changed " + arrays_[i].name, result);
      continue;
    }
    if (!transfers.are_guards_intact(buffer)) fail("wrote outside " + arrays_[i].name, result);
    const Output& output = outputs_[outputs.size()];
    outputs.push_back(output.is_whole ? transfers.get(buffer, guard_bytes, arrays_[i].bytes())
                                      : transfers.get_elements(buffer, size_of(arrays_[i].type), output.points));
  }
  return outputs;
}

}  // namespace omniconv::checking
