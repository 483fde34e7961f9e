#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/filter2d/box/box.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/vector/box_filter.h"
#include "operations/filter2d/vector/real_box_filter.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;
using kernels::BoxColumn;
using kernels::BoxFilter;

// Results larger than this leave the caches before anyone reads them, so they are written past them: where elements
// have four bytes and more, and memory, not arithmetic, limits.
constexpr std::int64_t streamed_bytes = std::int64_t{16} << 20;

// Calls visit(filter) with the filter that serves the task.
template <typename Visit>
auto with_filter(const Filter2dTask& task, const Visit& visit) {
  if (!is_integer(task.problem.input)) {
    if (task.weights.accumulate == DataType::f64) return visit(kernels::RealBoxFilter<double>(task));
    return visit(kernels::RealBoxFilter<float>(task));
  }
  switch (kernels::box_column(task)) {
    case BoxColumn::u16: return visit(BoxFilter<std::uint16_t>(task));
    case BoxColumn::u32: return visit(BoxFilter<std::uint32_t>(task));
    case BoxColumn::u64: break;
  }
  return visit(BoxFilter<std::uint64_t>(task));
}

template <typename BoxTiles>
class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, const DevicePointer& device, std::shared_ptr<const BoxTiles> filter)
      : Filter2dPlanBody(task), device_(device), cpu_(dynamic_cast<CpuDevice&>(*device)), filter_(std::move(filter)) {}

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Filter2dRun& run) const {
    const RowWindow input{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                          run.input_rows};
    const typename BoxTiles::Output output{
        run.output.impl()->host() + run.output_offset_bytes, run.output_stride_bytes, run.output_first,
        size_of(task().problem.output) >= 4 && run.output_rows * run.output_stride_bytes >= streamed_bytes};
    std::byte* const workspace = run.workspace.impl()->host();
    if (run.output_rows == 0) return;
    const kernels::Tiling tiling = filter_->tiling(run.output_rows, cpu_.threads());
    cpu_.parallel_for(tiling.count(), [&](std::int64_t i, int slot) {
      filter_->run(input, output, tiling[i], workspace + slot * filter_->workspace_bytes());
    });
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  std::shared_ptr<const BoxTiles> filter_;
};

class BoxCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/box/cpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    const auto* const cpu = dynamic_cast<const CpuDevice*>(device.get());
    if (cpu == nullptr) return "runs on the CPU alone";
    if (std::string reason = box_refusal(task); !reason.empty()) return reason;
    return with_filter(task, [&]<typename BoxTiles>(BoxTiles made) {
      const auto filter = std::make_shared<const BoxTiles>(std::move(made));
      return offer_of(task, {.operations = box_operations(task),
                             .bound = box_bound(task),
                             .workspace_bytes = checked_multiply(filter->workspace_bytes(), cpu->threads(),
                                                                 "the workspace of all threads"),
                             .plan = [=] { return std::make_shared<Plan<BoxTiles>>(task, device, filter); }});
    });
  }
};

}  // namespace

const Filter2dSolver& box_cpu() {
  static const BoxCpu solver;
  return solver;
}

}  // namespace omniconv::operations
