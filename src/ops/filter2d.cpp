#include "omniconv/filter2d.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/border_map.h"
#include "core/checked.h"
#include "core/suggest.h"
#include "core/weights.h"
#include "omniconv/error.h"
#include "ops/operand_check.h"
#include "solvers/solver.h"

namespace omniconv {
namespace {

using solvers::Filter2dSolver;

// The candidates that may be chosen first, cheapest first; equal costs keep the registry's order.
std::vector<const Filter2dSolver*> in_order(const Filter2dTask& task, const devices::Device& device) {
  const auto all = solvers::filter2d_solvers();
  std::vector<const Filter2dSolver*> order(all.begin(), all.end());
  std::stable_sort(order.begin(), order.end(), [&](const Filter2dSolver* a, const Filter2dSolver* b) {
    return a->operations(task, device) < b->operations(task, device);
  });
  return order;
}

std::string describe(const solvers::ErrorBound& bound, const Filter2dTask& task) {
  if (is_bit_exact(task.problem)) return "bit-exact";
  const char* magnitudes = "sum|x*w|";
  if (task.weights.alpha_rule == AlphaRule::premultiplied) magnitudes = "(sums of magnitudes / mean opacity)";
  if (task.second) magnitudes = "hypot(sum|x*wx|, sum|x*wy|)";
  return fmt::format("{:g} * ({:g}/2 + {:g}) * 2^-{} * {}", bound.amplification, bound.chain, bound.constant,
                     task.weights.accumulate == DataType::f64 ? 52 : 23, magnitudes);
}

const Filter2dSolver& named_solver(const std::string& id, const Filter2dTask& task, const devices::Device& device) {
  std::vector<std::string_view> ids;
  for (const Filter2dSolver* solver : solvers::filter2d_solvers()) {
    if (solver->id() == id) {
      const std::string reason = solver->refusal(task, device);
      if (!reason.empty())
        throw bad_input(fmt::format("solver {} cannot serve {}: {}", id, to_text(task.problem), reason));
      return *solver;
    }
    ids.push_back(solver->id());
  }
  throw bad_input(fmt::format("unknown solver '{}': {}", id, suggest(id, ids)));
}

std::unique_ptr<solvers::Filter2dPlanBody> make_body(const Filter2dSolver& solver, const Filter2dTask& task,
                                                     const std::shared_ptr<devices::Device>& device) {
  auto body = solver.plan(task, device);
  body->task = task;
  body->solver_id = solver.id();
  body->device = device;
  return body;
}

bool served_by_cpu(const Filter2dTask& task) {
  const auto cpu = devices::cpu_backend().open("", {});
  const auto all = solvers::filter2d_solvers();
  return std::any_of(all.begin(), all.end(),
                     [&](const Filter2dSolver* solver) { return solver->refusal(task, *cpu).empty(); });
}

std::unique_ptr<solvers::Filter2dPlanBody> choose(const Filter2dTask& task,
                                                  const std::shared_ptr<devices::Device>& device,
                                                  const Filter2dOptions& options) {
  const auto fits = [&](std::int64_t workspace) {
    return options.max_workspace_bytes < 0 || workspace <= options.max_workspace_bytes;
  };
  if (options.solver != "auto") {
    const Filter2dSolver& solver = named_solver(options.solver, task, *device);
    const std::int64_t workspace = solver.workspace_bytes(task, *device);
    if (!fits(workspace))
      throw bad_input(fmt::format("solver {} needs a workspace of {} bytes: the limit is {}", options.solver, workspace,
                                  options.max_workspace_bytes));
    return make_body(solver, task, device);
  }
  std::string reasons;
  std::int64_t least = -1;
  for (const Filter2dSolver* solver : in_order(task, *device)) {
    const std::string reason = solver->refusal(task, *device);
    if (!reason.empty()) {
      reasons += fmt::format("; {}: {}", solver->id(), reason);
      continue;
    }
    const std::int64_t workspace = solver->workspace_bytes(task, *device);
    if (fits(workspace)) return make_body(*solver, task, device);
    least = least < 0 ? workspace : std::min(least, workspace);
  }
  if (least >= 0)
    throw bad_input(fmt::format("no solver keeps to a workspace of {} bytes: the least that serves is {}",
                                options.max_workspace_bytes, least));
  const bool cpu_would = device->kind() != devices::DeviceKind::cpu && served_by_cpu(task);
  throw bad_input(fmt::format("no solver on {} serves {}{}{}", device->info().id, to_text(task.problem), reasons,
                              cpu_would ? "; choose the device cpu" : ""));
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
NamedPart part_of(const Side& side, std::int64_t row_bytes) {
  return {side.name, side.buffer, side.offset_bytes,
          side.rows > 0 ? (side.rows - 1) * side.stride_bytes + row_bytes : 0};
}

// Images side by side in the rows of a larger one share no pixel.
bool are_side_by_side(const devices::Part& a, std::int64_t a_row_bytes, const devices::Part& b,
                      std::int64_t b_row_bytes, std::int64_t stride_bytes) {
  const auto stride = static_cast<std::uintptr_t>(stride_bytes);
  const std::uintptr_t first = address_of(a), second = address_of(b);
  const auto between = static_cast<std::int64_t>(second >= first ? (second - first) % stride
                                                                 : (stride - (first - second) % stride) % stride);
  return between >= a_row_bytes && between + b_row_bytes <= stride_bytes;
}

void check_apart(const NamedPart& input, std::int64_t input_row_bytes, const NamedPart& output,
                 std::int64_t output_row_bytes, std::int64_t stride_bytes) {
  const devices::Part from{*input.buffer.impl(), input.offset_bytes, input.bytes},
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

Filter2dPlan::Filter2dPlan(const Context& context, const Filter2dProblem& problem, const Filter& filter,
                           const Options& options)
    : body_(choose(task_for(problem, filter), context.impl(), options)) {}

const Filter2dProblem& Filter2dPlan::problem() const {
  return body_->task.problem;
}
const std::string& Filter2dPlan::solver() const {
  return body_->solver_id;
}
std::int64_t Filter2dPlan::workspace_bytes() const {
  return body_->workspace_bytes();
}

std::int64_t Filter2dPlan::workspace_bytes(std::int64_t output_rows) const {
  return body_->strip_workspace_bytes(output_rows);
}

double Filter2dPlan::compile_seconds() const {
  return body_->compile_seconds();
}

Event Filter2dPlan::run(Queue& queue, const Filter2dRun& run) const {
  const Filter2dProblem& problem = body_->task.problem;
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
  check_device("input", run.input, *body_->device);
  check_device("output", run.output, *body_->device);
  check_access("the input", run.input, {.write = false});
  check_access("the output", run.output, {.read = false});
  const std::int64_t input_row = problem.w * problem.c * size_of(problem.input),
                     output_row = Q(problem) * problem.c * size_of(problem.output);
  const NamedPart from = part_of(input, input_row), to = part_of(output, output_row);
  check_apart(from, input_row, to, output_row, input.stride_bytes == output.stride_bytes ? input.stride_bytes : 0);
  check_workspace(run.workspace, workspace_bytes(complete.output_rows), body_->solver_id, *body_->device, {from, to});
  check_rows_present(body_->task, complete);
  return body_->run(present(queue), complete);
}

std::vector<Filter2dCandidate> explain(const Context& context, const Filter2dProblem& problem, const Filter& filter) {
  const Filter2dTask task = task_for(problem, filter);
  std::vector<Filter2dCandidate> candidates;
  for (const Filter2dSolver* solver : in_order(task, *context.impl())) {
    Filter2dCandidate candidate;
    candidate.solver = solver->id();
    candidate.reason = solver->refusal(task, *context.impl());
    candidate.applicable = candidate.reason.empty();
    if (candidate.applicable) {
      candidate.workspace_bytes = solver->workspace_bytes(task, *context.impl());
      candidate.operations = solver->operations(task, *context.impl());
      candidate.bound = describe(solver->bound(task), task);
    }
    candidates.push_back(std::move(candidate));
  }
  std::stable_partition(candidates.begin(), candidates.end(),
                        [](const auto& candidate) { return candidate.applicable; });
  return candidates;
}

RowSpan input_rows_for(const Filter2dProblem& problem, const Filter& filter, std::int64_t output_first,
                       std::int64_t output_rows) {
  return input_rows_for({problem, analyse(problem, filter)}, output_first, output_rows);
}

}  // namespace omniconv
