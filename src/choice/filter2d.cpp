#include "omniconv/filter2d.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "choice/choose.h"
#include "choice/filter2d.h"
#include "choice/operand_check.h"
#include "choice/plan_record.h"
#include "core/border_map.h"
#include "core/checked.h"
#include "omniconv/error.h"
#include "operations/filter2d/filter2d.h"
#include "operations/filter2d/weights.h"

namespace omniconv {
namespace {

// Weights beyond so many are no part of what a context remembers.
constexpr std::size_t most_remembered_weights = 1024;

std::string written(const std::optional<std::int64_t>& anchor) {
  return anchor ? std::to_string(*anchor) : "middle";
}

std::string key_of(const Filter2dProblem& problem, const Filter& filter, const SolverOptions& options) {
  std::string key = fmt::format("{} {} {} {} {} {} {}\n{}", choice::key_of(problem, options), written(filter.anchor_y),
                                written(filter.anchor_x), filter.scale, filter.bias, filter.opaque_input,
                                filter.opaque_output, filter.weights.size());
  for (const std::vector<double>* const weights : {&filter.weights, &filter.second_weights})
    key.append(reinterpret_cast<const char*>(weights->data()), weights->size() * sizeof(double));
  return key;
}

std::shared_ptr<const choice::PlanRecord> record_for(const Context& context, const Filter2dProblem& problem,
                                                     const Filter& filter, const SolverOptions& options) {
  const auto make = [&] {
    return choice::make_record(context, problem, operations::AnyTask(task_for(problem, filter)), options);
  };
  if (filter.weights.size() > most_remembered_weights) return make();
  validate(problem);  // what is not valid may have the text of what is
  return choice::remembered(context, key_of(problem, filter, options), make);
}

const operations::Filter2dPlanBody& body_of(const Plan& plan) {
  return static_cast<const operations::Filter2dPlanBody&>(*plan.record().body);
}

// One image of a run: defaults filled in, then checked against its buffer.
struct Side {
  const char* name;
  const Buffer& buffer;
  std::int64_t offset_bytes;
  std::int64_t& stride_bytes;
  std::int64_t first;
  std::int64_t& rows;
};

void check_side(const Side& side, std::int64_t all_rows, std::int64_t row_elements, DataType type) {
  if (!side.buffer) throw bad_input(fmt::format("the {} buffer is missing", side.name));
  const std::int64_t size = size_of(type);
  const std::int64_t row_bytes = checked_multiply(row_elements, size, "a row");
  if (side.stride_bytes == 0) side.stride_bytes = row_bytes;
  if (side.rows < 0) side.rows = all_rows;
  if (side.stride_bytes < row_bytes || side.stride_bytes % size != 0)
    throw bad_input(fmt::format("the {} stride of {} bytes must be a multiple of {} and at least {}", side.name,
                                side.stride_bytes, size, row_bytes));
  if (side.offset_bytes < 0 || side.offset_bytes % size != 0)
    throw bad_input(
        fmt::format("the {} offset of {} bytes must be a positive multiple of {}", side.name, side.offset_bytes, size));
  const std::int64_t last_row =
      checked_multiply(std::max<std::int64_t>(side.rows - 1, 0), side.stride_bytes, "the image");
  const std::int64_t end =
      checked_add(checked_add(side.offset_bytes, last_row, "the image"), side.rows > 0 ? row_bytes : 0, "the image");
  if (end > side.buffer.bytes())
    throw bad_input(fmt::format("the {} buffer has {} bytes: {} rows at a stride of {} from offset {} need {}",
                                side.name, side.buffer.bytes(), side.rows, side.stride_bytes, side.offset_bytes, end));
  check_alignment(side.name, side.buffer, size);
}

// What a checked image takes, from its first pixel to its last.
NamedRange range_of(const Side& side, std::int64_t row_bytes) {
  return {side.name, side.buffer, side.offset_bytes,
          side.rows > 0 ? (side.rows - 1) * side.stride_bytes + row_bytes : 0};
}

// Images side by side in the rows of a larger one share no pixel.
bool are_side_by_side(const devices::MemoryRange& a, std::int64_t a_row_bytes, const devices::MemoryRange& b,
                      std::int64_t b_row_bytes, std::int64_t stride_bytes) {
  const auto stride = static_cast<std::uintptr_t>(stride_bytes);
  const std::uintptr_t first = address_of(a), second = address_of(b);
  const auto between = static_cast<std::int64_t>(second >= first ? (second - first) % stride
                                                                 : (stride - (first - second) % stride) % stride);
  return between >= a_row_bytes && between + b_row_bytes <= stride_bytes;
}

void check_apart(const NamedRange& input, std::int64_t input_row_bytes, const NamedRange& output,
                 std::int64_t output_row_bytes, std::int64_t stride_bytes) {
  const devices::MemoryRange from{*input.buffer.impl(), input.offset_bytes, input.bytes},
      to{*output.buffer.impl(), output.offset_bytes, output.bytes};
  if (!overlap(from, to) ||
      (stride_bytes > 0 && are_side_by_side(from, input_row_bytes, to, output_row_bytes, stride_bytes)))
    return;
  throw bad_input(
      "input and output overlap in memory: a filter would read pixels that it has overwritten; keep them apart");
}

// The real or virtual rows that output rows [p0, p1) read, given rows that may be read as they are.
void check_rows_present(const Filter2dTask& task, const Filter2dRun& run) {
  const Filter2dProblem& problem = task.problem;
  const std::int64_t first = run.output_first - task.weights.anchor_y;
  const std::int64_t last = run.output_first + run.output_rows - 1 - task.weights.anchor_y + problem.r;  // one past
  const auto given = [&](std::int64_t row) { return row >= run.input_first && row < run.input_first + run.input_rows; };
  const auto check = [&](std::int64_t row) {
    if (given(row)) return;
    const std::int64_t mapped = border_index(problem.border.mode, row, problem.h);
    if (mapped >= 0 && !given(mapped))
      throw bad_input(
          fmt::format("the run reads input row {} and was given rows {} to {}: output rows {} to {} need it", mapped,
                      run.input_first, run.input_first + run.input_rows - 1, run.output_first,
                      run.output_first + run.output_rows - 1));
  };
  // Inside the image and inside the window, rows need no look: only what lies before or behind the window does.
  for (std::int64_t row = first; row < std::min(last, run.input_first); ++row) check(row);
  for (std::int64_t row = std::max(first, run.input_first + run.input_rows); row < last; ++row) check(row);
}

}  // namespace

const Filter2dTask& choice::task_of(const Filter2dPlan& plan) {
  return plan.plan().record().task.as<Filter2dTask>();
}

Filter2dPlan::Filter2dPlan(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                           const Options& options)
    : plan_(record_for(context, problem, filter, options)) {}

Filter2dPlan::Filter2dPlan(Plan plan) : plan_(std::move(plan)) {
  get<Filter2dProblem>(plan_.problem());  // throws
}

const Filter2dProblem& Filter2dPlan::problem() const {
  return choice::task_of(*this).problem;
}

std::int64_t Filter2dPlan::workspace_bytes(std::int64_t output_rows) const {
  return body_of(plan_).strip_workspace_bytes(output_rows, plan_.workspace_bytes());
}

void Filter2dPlan::append_checked(devices::Sequence& sequence, const Filter2dRun& run) const {
  const Filter2dTask& task = choice::task_of(*this);
  const Filter2dProblem& problem = task.problem;
  const devices::Device& device = *plan_.record().device;
  Filter2dRun complete = run;
  const Side input{"input",         run.input,          run.input_offset_bytes, complete.input_stride_bytes,
                   run.input_first, complete.input_rows},
      output{"output",         run.output,          run.output_offset_bytes, complete.output_stride_bytes,
             run.output_first, complete.output_rows};
  check_side(input, problem.h, problem.w * problem.c, problem.input);
  check_side(output, P(problem), Q(problem) * problem.c, problem.output);
  if (run.output_first < 0 || complete.output_rows > P(problem) - run.output_first)
    throw bad_input(fmt::format("output rows {} to {} lie outside the output's {} rows", run.output_first,
                                run.output_first + complete.output_rows - 1, P(problem)));
  check_device("input", run.input, device);
  check_device("output", run.output, device);
  check_access("the input", run.input, {.write = false});
  check_access("the output", run.output, {.read = false});
  const std::int64_t input_row = problem.w * problem.c * size_of(problem.input),
                     output_row = Q(problem) * problem.c * size_of(problem.output);
  const NamedRange from = range_of(input, input_row), to = range_of(output, output_row);
  check_apart(from, input_row, to, output_row, input.stride_bytes == output.stride_bytes ? input.stride_bytes : 0);
  check_workspace(run.workspace, workspace_bytes(complete.output_rows), solver(), device, std::array{from, to});
  check_rows_present(task, complete);
  body_of(plan_).append(sequence, complete);
}

Event Filter2dPlan::run(Queue& queue, const Filter2dRun& run) const {
  devices::Queue& to = present(queue);
  const std::shared_ptr<devices::Sequence> sequence = to.take_sequence();
  append_checked(*sequence, run);
  return to.submit(sequence);
}

void Filter2dPlan::append(Sequence& sequence, const Filter2dRun& run) const {
  append_checked(present(sequence, *plan_.record().device), run);
}

std::vector<Candidate> explain(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                               const SolverOptions& options) {
  const operations::AnyTask task(task_for(problem, filter));
  std::vector<Candidate> candidates;
  for (const choice::Considered& one :
       choice::consider(operation_of(static_cast<const Filter2dProblem*>(nullptr)), task, context.impl(), options))
    candidates.push_back(choice::candidate_of(one));
  return candidates;
}

RowSpan input_rows_for(const Filter2dProblem& problem, const Filter& filter, std::int64_t output_first,
                       std::int64_t output_rows) {
  return input_rows_for({problem, analyse(problem, filter)}, output_first, output_rows);
}

}  // namespace omniconv
