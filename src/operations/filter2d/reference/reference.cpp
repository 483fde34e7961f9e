// The references as solvers: they close the list, so that every task has a candidate on the CPU.
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/direct/direct.h"
#include "operations/filter2d/gradient/gradient.h"
#include "operations/filter2d/premultiplied/premultiplied.h"
#include "operations/filter2d/reference/filter2d.h"

namespace omniconv::operations {
namespace {

using Element = void (*)(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch,
                         std::byte* y);

void double_and_store(const Filter2dTask& task, RowWindow x, std::int64_t p, std::int64_t q, std::int64_t ch,
                      std::byte* y) {
  store_element(task.problem.output, reference::double_element(task, x, p, q, ch).value, y);
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, const DevicePointer& device, Element element)
      : Filter2dPlanBody(task), device_(device), cpu_(dynamic_cast<devices::CpuDevice&>(*device)), element_(element) {}

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Filter2dRun& run) const {
    const Filter2dTask& task = this->task();
    const RowWindow x{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                      run.input_rows};
    std::byte* const y = run.output.impl()->host() + run.output_offset_bytes;
    const std::int64_t c = task.problem.c, size = size_of(task.problem.output);
    cpu_.parallel_for(run.output_rows, [&](std::int64_t row, int) {
      for (std::int64_t q = 0; q < Q(task.problem); ++q)
        for (std::int64_t ch = 0; ch < c; ++ch)
          element_(task, x, run.output_first + row, q, ch, y + row * run.output_stride_bytes + (q * c + ch) * size);
    });
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Element element_;
};

class Reference : public Filter2dSolver {
 public:
  Reference(std::string_view id, Element element, bool serves_integers)
      : id_(id), element_(element), serves_integers_(serves_integers) {}

  std::string_view id() const override { return id_; }

  SolverRole role() const override { return SolverRole::reference; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    if (!serves_integers_ && is_bit_exact(task.problem))
      return "its bits differ from those promised for integer images";
    // Scalar, with an index computation for every tap.
    const double operations = (task.second ? 2 : 1) * 800 * direct_operations(task);
    return offer_of(task, {.operations = operations, .bound = bound(task), .plan = [=, element = element_] {
                             return std::make_shared<Plan>(task, device, element);
                           }});
  }

 private:
  // Of the definition: rank one adds the error of the factors, as in separable. The double reference is far within.
  static ErrorBound bound(const Filter2dTask& task) {
    if (task.weights.alpha_rule != AlphaRule::none) return premultiplied_bound(task);
    ErrorBound bound = direct_bound(task);
    const bool second_rank_one = task.second && task.second->form == WeightForm::rank_one;
    if (task.weights.form == WeightForm::rank_one || second_rank_one) bound.constant = 4;
    if (task.second) bound.constant += magnitude_constant;
    return bound;
  }

  std::string_view id_;
  Element element_;
  bool serves_integers_;
};

}  // namespace

const Filter2dSolver& definition() {
  static const Reference solver("filter2d/definition/cpu.1", reference::definition_element, true);
  return solver;
}

const Filter2dSolver& double_precision() {
  static const Reference solver("filter2d/double/cpu.1", double_and_store, false);
  return solver;
}

}  // namespace omniconv::operations
