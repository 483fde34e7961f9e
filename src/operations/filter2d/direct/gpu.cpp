// Direct filtering on OpenCL and CUDA devices: one work item chains all taps of one element of several output rows.
#include "embedded/direct.kernel.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/direct/direct.h"
#include "operations/filter2d/gpu_text.h"

namespace omniconv::operations {
namespace {

using devices::KernelArgument;

constexpr std::int64_t rows_per_item = 4;

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, devices::Device& device) : Filter2dPlanBody(task), parts_(row_parts(task)) {
    const bool equal = task.weights.form == WeightForm::equal;
    integer_sums_ = equal && !pixel_sums_fit_f32(task);
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    definitions.push_back({"SUM", !equal ? "SUM_weighted" : integer_sums_ ? "SUM_pixels_s64" : "SUM_pixels_f32"});
    definitions.push_back({"ROWS", std::to_string(rows_per_item)});
    program_ = device.build(std::string(kernels::filter2d_pixels()) + std::string(direct_kernel), definitions);
    weights_ = upload_weights(device, task.weights.values);
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    in_launches(run, rows_per_item, [&](const Filter2dRun& part) { append_part(sequence, part); });
  }

 private:
  void append_part(devices::Sequence& sequence, const Filter2dRun& run) const {
    const Weights& weights = task().weights;
    const KernelArgument border_value = integer_sums_ ? KernelArgument(static_cast<std::int64_t>(weights.border_value))
                                                      : KernelArgument(static_cast<float>(weights.border_value));
    const auto arguments =
        image_arguments(run, weights_.get(), static_cast<float>(weights.scale), static_cast<float>(weights.bias),
                        border_value, parts_.interior, parts_.rest);
    launch_parts(sequence, program_, {"direct_interior", "direct_rest"}, parts_,
                 divide_up(run.output_rows, rows_per_item), arguments);
  }

  RowParts parts_;
  bool integer_sums_ = false;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> weights_;
};

class DirectGpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/gpu.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = direct_refusal(task); !reason.empty()) return reason;
    return offer_of(task, {.operations = gpu_pixel_operations + gpu_tap_operations * direct_operations(task),
                           .bound = direct_bound(task),
                           .plan = [=] { return std::make_shared<Plan>(task, *device); }});
  }
};

}  // namespace

const Filter2dSolver& direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
