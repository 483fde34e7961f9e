// Separable filtering on OpenCL and CUDA devices: chains along the rows of a chunk into an fp32 workspace, then chains
// down its columns, chunk after chunk. Equal weights are served too: sums of pixels that are exact in fp32 do not
// depend on their order.
#include "embedded/separable.kernel.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/gpu_text.h"
#include "operations/filter2d/separable/separable.h"

namespace omniconv::operations {
namespace {

using devices::KernelArgument;

constexpr std::int64_t rows_per_item = 4;
class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, devices::Device& device)
      : Filter2dPlanBody(task), parts_(row_parts(task)), chunk_(chunk_for(task)) {
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    definitions.push_back({"ROWS", std::to_string(rows_per_item)});
    definitions.push_back({"EQUAL", adds_pixels(task) ? "1" : "0"});
    program_ = device.build(std::string(kernels::filter2d_pixels()) + std::string(separable_kernel), definitions);
    const Weights& weights = task.weights;
    const auto ones = [](std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 1.0); };
    row_weights_ = upload_weights(device, adds_pixels(task) ? ones(weights.s) : weights.row);
    column_weights_ = upload_weights(device, adds_pixels(task) ? ones(weights.r) : weights.column);
    if (adds_pixels(task)) factor_ = static_cast<float>(weights.values[0]);
  }

  std::int64_t strip_workspace_bytes(std::int64_t output_rows, std::int64_t) const override {
    return chunk_.workspace_bytes_for(output_rows);
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    for (std::int64_t done = 0; done < run.output_rows || done == 0; done += chunk_.rows) {
      const std::int64_t rows = std::min(chunk_.rows, run.output_rows - done);
      filter_rows(sequence, run, run.output_first + done, rows + task().problem.r - 1);
      filter_columns(sequence, run, done, rows);
    }
  }

 private:
  // Fills workspace rows [0, rows), the first of which is the topmost that output row p reads.
  void filter_rows(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t p, std::int64_t rows) const {
    const KernelArgument arguments[] = {run.input.impl().get(),
                                        run.input_offset_bytes,
                                        run.input_stride_bytes,
                                        run.input_first,
                                        run.input_rows,
                                        run.workspace.impl().get(),
                                        p - task().weights.anchor_y,
                                        row_weights_.get(),
                                        static_cast<float>(task().weights.border_value),
                                        parts_.interior,
                                        parts_.rest};
    launch_parts(sequence, program_, {"rows_interior", "rows_rest"}, parts_, rows, arguments);
  }

  // From the workspace to rows [done, done + rows) of the run's output.
  void filter_columns(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
    const KernelArgument arguments[] = {run.workspace.impl().get(),
                                        run.output.impl().get(),
                                        run.output_offset_bytes + done * run.output_stride_bytes,
                                        run.output_stride_bytes,
                                        rows,
                                        column_weights_.get(),
                                        factor_,
                                        static_cast<float>(task().weights.scale),
                                        static_cast<float>(task().weights.bias)};
    sequence.launch(program_, "columns", grid_for(parts_.interior + parts_.rest, divide_up(rows, rows_per_item)),
                    arguments);
  }

  RowParts parts_;
  Chunk chunk_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> row_weights_, column_weights_;
  float factor_ = 1;
};

class SeparableGpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/separable/gpu.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = separable_or_equal_refusal(task); !reason.empty()) return reason;
    if (std::string reason = chunk_refusal(task, *device); !reason.empty()) return reason;
    // The intermediate elements are written, and read again by another launch.
    constexpr double intermediate = 150;
    return offer_of(task, {.operations = gpu_pixel_operations + intermediate +
                                         gpu_tap_operations * static_cast<double>(task.weights.r + task.weights.s),
                           .bound = separable_bound(task),
                           .workspace_bytes = chunk_for(task).workspace_bytes,
                           .plan = [=] { return std::make_shared<Plan>(task, *device); }});
  }
};

}  // namespace

const Filter2dSolver& separable_gpu() {
  static const SeparableGpu solver;
  return solver;
}

}  // namespace omniconv::operations
