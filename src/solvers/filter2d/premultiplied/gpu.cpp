// Premultiplied alpha on OpenCL and CUDA devices: one launch for general weights, chains along rows and down columns
// for rank one and equal weights, another solver's plan and a copy of opacity where the weights sum to zero.
#include "embedded/premultiplied.kernel.h"
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/gpu_text.h"
#include "solvers/filter2d/premultiplied/premultiplied.h"

namespace omniconv::solvers {
namespace {

using devices::KernelArgument;

constexpr std::int64_t rows_per_item = 4;
constexpr std::int64_t most_channels_at_once = 4;  // of a pixel, by one work item

std::int64_t items_of_a_pixel(const Filter2dTask& task) {
  return task.problem.c <= most_channels_at_once ? 1 : task.problem.c;
}

std::shared_ptr<devices::Program> build(const Filter2dTask& task, devices::Device& device) {
  std::vector<devices::Definition> definitions = pixel_definitions(task);
  const auto add = [&](const char* symbol, std::int64_t value) {
    definitions.push_back({symbol, std::to_string(value)});
  };
  add("ALPHA", task.problem.alpha_channel);
  add("KEEPS_OPACITY", task.weights.keeps_opacity ? 1 : 0);
  add("CHANNELS", task.problem.c / items_of_a_pixel(task));
  add("ROWS", rows_per_item);
  return device.build(std::string(kernels::filter2d_pixels()) + std::string(kernels::exact_division()) +
                          std::string(premultiplied_kernel),
                      definitions);
}

KernelArgument fp32(double value) {
  return static_cast<float>(value);
}

class TapsPlan final : public Filter2dPlanBody {
 public:
  TapsPlan(const Filter2dTask& the_task, devices::Device& the_device)
      : parts_(row_parts(the_task, items_of_a_pixel(the_task))),
        program_(build(the_task, the_device)),
        weights_(upload_weights(the_device, the_task.weights.values)) {}

  std::int64_t workspace_bytes() const override { return 0; }
  double compile_seconds() const override { return program_->compile_seconds(); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    return run_in_parts(queue, run, rows_per_item, [&](const Filter2dRun& part) { return run_part(queue, part); });
  }

 private:
  Event run_part(devices::Queue& queue, const Filter2dRun& run) const {
    const Weights& weights = task.weights;
    const auto arguments = image_arguments(run, weights_.get(), fp32(weights.border_value), fp32(weights.opacity_unit),
                                           fp32(weights.opaque_sum), fp32(weights.opaque_output), fp32(weights.scale),
                                           fp32(weights.bias), parts_.interior, parts_.rest);
    return launch_parts(queue, program_, {"taps_interior", "taps_rest"}, parts_,
                        divide_up(run.output_rows, rows_per_item), arguments);
  }

  RowParts parts_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> weights_;
};

class RowsFirstPlan final : public Filter2dPlanBody {
 public:
  RowsFirstPlan(const Filter2dTask& the_task, devices::Device& the_device)
      : parts_(row_parts(the_task, items_of_a_pixel(the_task))),
        chunk_(chunk_for(the_task)),
        program_(build(the_task, the_device)) {
    const Weights& weights = the_task.weights;
    const bool equal = weights.form == WeightForm::equal;
    const auto ones = [](std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 1.0); };
    row_weights_ = upload_weights(the_device, equal ? ones(weights.s) : weights.row);
    column_weights_ = upload_weights(the_device, equal ? ones(weights.r) : weights.column);
    weight_ = equal ? weights.values.front() : 1;
  }

  std::int64_t workspace_bytes() const override { return chunk_.workspace_bytes; }
  std::int64_t strip_workspace_bytes(std::int64_t output_rows) const override {
    return chunk_.workspace_bytes_for(output_rows);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    Event first, last;
    for (std::int64_t done = 0; done < run.output_rows || done == 0; done += chunk_.rows) {
      const std::int64_t rows = std::min(chunk_.rows, run.output_rows - done);
      Event along = filter_rows(queue, run, run.output_first + done, rows + task.problem.r - 1);
      if (done == 0) first = std::move(along);
      last = filter_columns(queue, run, done, rows);
    }
    return queue.span(std::move(first), std::move(last));
  }

 private:
  // Fills workspace rows [0, rows), the first of which is the topmost that output row p reads.
  Event filter_rows(devices::Queue& queue, const Filter2dRun& run, std::int64_t p, std::int64_t rows) const {
    const KernelArgument arguments[] = {run.input.impl().get(),
                                        run.input_offset_bytes,
                                        run.input_stride_bytes,
                                        run.input_first,
                                        run.input_rows,
                                        run.workspace.impl().get(),
                                        p - task.weights.anchor_y,
                                        row_weights_.get(),
                                        fp32(task.weights.border_value),
                                        fp32(task.weights.opacity_unit),
                                        parts_.interior,
                                        parts_.rest};
    return launch_parts(queue, program_, {"rows_interior", "rows_rest"}, parts_, rows, arguments);
  }

  // From the workspace to rows [done, done + rows) of the run's output.
  Event filter_columns(devices::Queue& queue, const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
    const Weights& weights = task.weights;
    const KernelArgument arguments[] = {run.workspace.impl().get(),
                                        run.output.impl().get(),
                                        run.output_offset_bytes + done * run.output_stride_bytes,
                                        run.output_stride_bytes,
                                        rows,
                                        column_weights_.get(),
                                        fp32(weight_),
                                        fp32(weights.opaque_sum),
                                        fp32(weights.opaque_output),
                                        fp32(weights.scale),
                                        fp32(weights.bias)};
    return queue.launch(program_, "columns", grid_for(parts_.interior + parts_.rest, divide_up(rows, rows_per_item)),
                        arguments);
  }

  RowParts parts_;
  Chunk chunk_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> row_weights_, column_weights_;
  double weight_ = 1;
};

// The task with all channels alike, and the solver that serves it.
Filter2dTask plain_task(Filter2dTask task) {
  task.problem.alpha_channel = -1;
  task.weights.alpha_rule = AlphaRule::none;
  return task;
}
const Filter2dSolver& plain_solver(const Filter2dTask& plain, const devices::Device& device) {
  return separable_gpu().refusal(plain, device).empty() ? separable_gpu() : direct_gpu();
}

class CopyPlan final : public Filter2dPlanBody {
 public:
  CopyPlan(const Filter2dTask& the_task, const std::shared_ptr<devices::Device>& the_device)
      : program_(build(the_task, *the_device)) {
    const Filter2dTask plain = plain_task(the_task);
    const Filter2dSolver& solver = plain_solver(plain, *the_device);
    std::unique_ptr<Filter2dPlanBody> body = solver.plan(plain, the_device);
    body->task = plain;
    body->solver_id = solver.id();
    body->device = the_device;
    colors_ = std::move(body);
  }

  std::int64_t workspace_bytes() const override { return colors_->workspace_bytes(); }
  double compile_seconds() const override { return program_->compile_seconds() + colors_->compile_seconds(); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    const auto copy_part = [&](const Filter2dRun& part) { return copy_opacity(queue, part); };
    Event colors = colors_->run(queue, run);
    return queue.span(std::move(colors), run_in_parts(queue, run, 1, copy_part));
  }

 private:
  Event copy_opacity(devices::Queue& queue, const Filter2dRun& run) const {
    const Filter2dProblem& problem = task.problem;
    const bool valid = problem.border.mode == BorderMode::valid;
    const KernelArgument arguments[] = {run.input.impl().get(),          run.input_offset_bytes,
                                        run.input_stride_bytes,          run.input_first,
                                        run.output.impl().get(),         run.output_offset_bytes,
                                        run.output_stride_bytes,         run.output_first,
                                        valid ? problem.r / 2 : 0,       valid ? problem.s / 2 : 0,
                                        fp32(task.weights.opacity_unit), fp32(task.weights.opaque_output)};
    return queue.launch(program_, "copy_opacity", grid_for(Q(problem), run.output_rows), arguments);
  }

  std::shared_ptr<const Filter2dPlanBody> colors_;
  std::shared_ptr<devices::Program> program_;
};

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/premultiplied/gpu.1"; }

  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (const std::string reason = gpu_refusal(task, device); !reason.empty()) return reason;
    if (const std::string reason = premultiplied_refusal(task); !reason.empty()) return reason;
    if (task.weights.alpha_rule == AlphaRule::copied) {
      const Filter2dTask plain = plain_task(task);
      return plain_solver(plain, device).refusal(plain, device);
    }
    return premultiplied_rows_first(task) ? chunk_refusal(task, device) : std::string();
  }

  ErrorBound bound(const Filter2dTask& task) const override { return premultiplied_bound(task); }
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
    return gpu_pixel_operations + gpu_tap_operations * (premultiplied_rows_first(task) ? r + s : r * s);
  }

  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const override {
    if (task.weights.alpha_rule == AlphaRule::copied) {
      const Filter2dTask plain = plain_task(task);
      return plain_solver(plain, device).workspace_bytes(plain, device);
    }
    return premultiplied_rows_first(task) ? chunk_for(task).workspace_bytes : 0;
  }

  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    if (task.weights.alpha_rule == AlphaRule::copied) return std::make_unique<CopyPlan>(task, device);
    if (premultiplied_rows_first(task)) return std::make_unique<RowsFirstPlan>(task, *device);
    return std::make_unique<TapsPlan>(task, *device);
  }
};

}  // namespace

const Filter2dSolver& premultiplied_gpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
