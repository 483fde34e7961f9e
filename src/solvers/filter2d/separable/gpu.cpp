// Separable filtering on OpenCL and CUDA devices: chains along the rows of a chunk into an fp32 workspace, then chains
// down its columns, chunk after chunk. Equal weights are served too: sums of pixels that are exact in fp32 do not
// depend on their order.
#include "embedded/separable.kernel.h"
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cost.h"
#include "solvers/filter2d/gpu_text.h"
#include "solvers/filter2d/separable/separable.h"

namespace omniconv::solvers {
namespace {

using devices::KernelArgument;

constexpr std::int64_t rows_per_item = 4;
class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& the_task, devices::Device& the_device)
      : parts_(row_parts(the_task)), chunk_(chunk_for(the_task)) {
    std::vector<devices::Definition> definitions = pixel_definitions(the_task);
    definitions.push_back({"ROWS", std::to_string(rows_per_item)});
    definitions.push_back({"EQUAL", adds_pixels(the_task) ? "1" : "0"});
    program_ = the_device.build(std::string(kernels::filter2d_pixels()) + std::string(separable_kernel), definitions);
    const Weights& weights = the_task.weights;
    const auto ones = [](std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 1.0); };
    row_weights_ = upload_weights(the_device, adds_pixels(the_task) ? ones(weights.s) : weights.row);
    column_weights_ = upload_weights(the_device, adds_pixels(the_task) ? ones(weights.r) : weights.column);
    if (adds_pixels(the_task)) factor_ = static_cast<float>(weights.values[0]);
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
                                        static_cast<float>(task.weights.border_value),
                                        parts_.interior,
                                        parts_.rest};
    return launch_parts(queue, program_, {"rows_interior", "rows_rest"}, parts_, rows, arguments);
  }

  // From the workspace to rows [done, done + rows) of the run's output.
  Event filter_columns(devices::Queue& queue, const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
    const KernelArgument arguments[] = {run.workspace.impl().get(),
                                        run.output.impl().get(),
                                        run.output_offset_bytes + done * run.output_stride_bytes,
                                        run.output_stride_bytes,
                                        rows,
                                        column_weights_.get(),
                                        factor_,
                                        static_cast<float>(task.weights.scale),
                                        static_cast<float>(task.weights.bias)};
    return queue.launch(program_, "columns", grid_for(parts_.interior + parts_.rest, divide_up(rows, rows_per_item)),
                        arguments);
  }

  RowParts parts_;
  Chunk chunk_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> row_weights_, column_weights_;
  float factor_ = 1;
};

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/separable/gpu.1"; }
  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (const std::string reason = gpu_refusal(task, device); !reason.empty()) return reason;
    if (const std::string reason = separable_or_equal_refusal(task); !reason.empty()) return reason;
    return chunk_refusal(task, device);
  }
  ErrorBound bound(const Filter2dTask& task) const override { return separable_bound(task); }
  // The intermediate elements are written, and read again by another launch.
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    constexpr double intermediate = 150;
    return gpu_pixel_operations + intermediate +
           gpu_tap_operations * static_cast<double>(task.weights.r + task.weights.s);
  }
  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device&) const override {
    return chunk_for(task).workspace_bytes;
  }
  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return std::make_unique<Plan>(task, *device);
  }
};

}  // namespace

const Filter2dSolver& separable_gpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
