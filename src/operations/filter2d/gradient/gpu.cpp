// Magnitudes on OpenCL and CUDA devices: one work item makes both sums of one element of several output rows.
#include "embedded/gradient.kernel.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/gpu_text.h"
#include "operations/filter2d/gradient/gradient.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t rows_per_item = 4;

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
  Plan(const Filter2dTask& task, devices::Device& device) : Filter2dPlanBody(task), parts_(row_parts(task)) {
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    definitions.push_back({"FORM_X", form_of(task, task.weights)});
    definitions.push_back({"FORM_Y", form_of(task, *task.second)});
    definitions.push_back({"ROWS", std::to_string(rows_per_item)});
    program_ = device.build(
        std::string(kernels::exact_root()) + std::string(kernels::filter2d_pixels()) + std::string(gradient_kernel),
        definitions);
    x_weights_ = upload(device, task.weights);
    y_weights_ = upload(device, *task.second);
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    in_launches(run, rows_per_item, [&](const Filter2dRun& part) { append_part(sequence, part); });
  }

 private:
  void append_part(devices::Sequence& sequence, const Filter2dRun& run) const {
    const Weights& weights = task().weights;
    const auto arguments = image_arguments(run, x_weights_.get(), y_weights_.get(), static_cast<float>(weights.scale),
                                           static_cast<float>(weights.bias), static_cast<float>(weights.border_value),
                                           parts_.interior, parts_.rest);
    launch_parts(sequence, program_, {"gradient_interior", "gradient_rest"}, parts_,
                 divide_up(run.output_rows, rows_per_item), arguments);
  }

  RowParts parts_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> x_weights_, y_weights_;
};

class GradientGpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/gradient/gpu.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = gradient_refusal(task); !reason.empty()) return reason;
    if (has_wide_sums(task))
      return "a kernel of equal weights has sums of pixels beyond 2^24, which only the CPU makes";
    const double taps = kernel_taps(task, task.weights) + kernel_taps(task, *task.second);
    return offer_of(task, {.operations = gpu_pixel_operations + gpu_tap_operations * taps,
                           .bound = gradient_bound(task),
                           .plan = [=] { return std::make_shared<Plan>(task, *device); }});
  }
};

}  // namespace

const Filter2dSolver& gradient_gpu() {
  static const GradientGpu solver;
  return solver;
}

}  // namespace omniconv::operations
