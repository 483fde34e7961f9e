// Direct filtering on OpenCL and CUDA devices: one work item chains all taps of one element of several output rows.
#include "embedded/direct.kernel.h"
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cost.h"
#include "solvers/filter2d/direct/direct.h"
#include "solvers/filter2d/gpu_text.h"

namespace omniconv::solvers {
namespace {

using devices::KernelArgument;

constexpr std::int64_t rows_per_item = 4;
constexpr std::int64_t no_workspace = 0;

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& the_task, devices::Device& the_device) : parts_(row_parts(the_task)) {
    const bool equal = the_task.weights.form == WeightForm::equal;
    integer_sums_ = equal && !pixel_sums_fit_f32(the_task);
    std::vector<devices::Definition> definitions = pixel_definitions(the_task);
    definitions.push_back({"SUM", !equal ? "SUM_weighted" : integer_sums_ ? "SUM_pixels_s64" : "SUM_pixels_f32"});
    definitions.push_back({"ROWS", std::to_string(rows_per_item)});
    program_ = the_device.build(std::string(kernels::filter2d_pixels()) + std::string(direct_kernel), definitions);
    weights_ = upload_weights(the_device, the_task.weights.values);
  }

  std::int64_t workspace_bytes() const override { return no_workspace; }

  double compile_seconds() const override { return program_->compile_seconds(); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    return run_in_parts(queue, run, rows_per_item, [&](const Filter2dRun& part) { return run_part(queue, part); });
  }

 private:
  Event run_part(devices::Queue& queue, const Filter2dRun& run) const {
    const Weights& weights = task.weights;
    const KernelArgument border_value = integer_sums_ ? KernelArgument(static_cast<std::int64_t>(weights.border_value))
                                                      : KernelArgument(static_cast<float>(weights.border_value));
    const auto arguments =
        image_arguments(run, weights_.get(), static_cast<float>(weights.scale), static_cast<float>(weights.bias),
                        border_value, parts_.interior, parts_.rest);
    return launch_parts(queue, program_, {"direct_interior", "direct_rest"}, parts_,
                        divide_up(run.output_rows, rows_per_item), arguments);
  }

  RowParts parts_;
  bool integer_sums_ = false;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> weights_;
};

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/gpu.1"; }
  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    const std::string reason = gpu_refusal(task, device);
    return reason.empty() ? direct_refusal(task) : reason;
  }
  ErrorBound bound(const Filter2dTask& task) const override { return direct_bound(task); }
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    return gpu_pixel_operations + gpu_tap_operations * direct_operations(task);
  }
  std::int64_t workspace_bytes(const Filter2dTask&, const devices::Device&) const override { return no_workspace; }
  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return std::make_unique<Plan>(task, *device);
  }
};

}  // namespace

const Filter2dSolver& direct_gpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
