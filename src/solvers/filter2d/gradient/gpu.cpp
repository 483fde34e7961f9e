// Magnitudes on OpenCL and CUDA devices: one work item makes both sums of one element of several output rows.
#include "embedded/gradient.kernel.h"
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/gpu_text.h"
#include "solvers/filter2d/gradient/gradient.h"

namespace omniconv::solvers {
namespace {

constexpr std::int64_t rows_per_item = 4;
constexpr std::int64_t no_workspace = 0;

// The sums of a kernel whose equal weights need 64-bit integers are made on the CPU alone.
bool has_wide_sums(const Filter2dTask& task) {
  const bool equal = task.weights.form == WeightForm::equal || task.second->form == WeightForm::equal;
  return equal && !pixel_sums_fit_f32(task);
}

std::string form_of(const Filter2dTask& task, const Weights& weights) {
  if (weights.form == WeightForm::equal) return "FORM_pixels";
  return rows_first(task, weights) ? "FORM_rows_first" : "FORM_weighted";
}

std::shared_ptr<devices::Buffer> upload(devices::Device& device, const Weights& weights) {
  std::vector<double> values = weights.values;
  values.insert(values.end(), weights.row.begin(), weights.row.end());
  values.insert(values.end(), weights.column.begin(), weights.column.end());
  return upload_weights(device, values);
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& the_task, devices::Device& the_device) : parts_(row_parts(the_task)) {
    std::vector<devices::Definition> definitions = pixel_definitions(the_task);
    definitions.push_back({"FORM_X", form_of(the_task, the_task.weights)});
    definitions.push_back({"FORM_Y", form_of(the_task, *the_task.second)});
    definitions.push_back({"ROWS", std::to_string(rows_per_item)});
    program_ = the_device.build(
        std::string(kernels::exact_root()) + std::string(kernels::filter2d_pixels()) + std::string(gradient_kernel),
        definitions);
    x_weights_ = upload(the_device, the_task.weights);
    y_weights_ = upload(the_device, *the_task.second);
  }

  std::int64_t workspace_bytes() const override { return no_workspace; }

  double compile_seconds() const override { return program_->compile_seconds(); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    return run_in_parts(queue, run, rows_per_item, [&](const Filter2dRun& part) { return run_part(queue, part); });
  }

 private:
  Event run_part(devices::Queue& queue, const Filter2dRun& run) const {
    const Weights& weights = task.weights;
    const auto arguments = image_arguments(run, x_weights_.get(), y_weights_.get(), static_cast<float>(weights.scale),
                                           static_cast<float>(weights.bias), static_cast<float>(weights.border_value),
                                           parts_.interior, parts_.rest);
    return launch_parts(queue, program_, {"gradient_interior", "gradient_rest"}, parts_,
                        divide_up(run.output_rows, rows_per_item), arguments);
  }

  RowParts parts_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> x_weights_, y_weights_;
};

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/gradient/gpu.1"; }
  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (const std::string reason = gpu_refusal(task, device); !reason.empty()) return reason;
    if (const std::string reason = gradient_refusal(task); !reason.empty()) return reason;
    if (has_wide_sums(task))
      return "a kernel of equal weights has sums of pixels beyond 2^24, which only the CPU makes";
    return {};
  }
  ErrorBound bound(const Filter2dTask& task) const override { return gradient_bound(task); }
  // (A single kernel is refused, and needs a number only for its place in lists.)
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    const Weights& second = task.second ? *task.second : task.weights;
    return gpu_pixel_operations + gpu_tap_operations * (kernel_taps(task, task.weights) + kernel_taps(task, second));
  }
  std::int64_t workspace_bytes(const Filter2dTask&, const devices::Device&) const override { return no_workspace; }
  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return std::make_unique<Plan>(task, *device);
  }
};

}  // namespace

const Filter2dSolver& gradient_gpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
