#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "kernels/cpu/box_filter.h"
#include "kernels/cpu/real_box_filter.h"
#include "solvers/filter2d/box/box.h"
#include "solvers/filter2d/candidates.h"

namespace omniconv::solvers {
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
  Plan(BoxTiles filter, CpuDevice& cpu) : cpu_(cpu), filter_(std::move(filter)) {}

  std::int64_t workspace_bytes() const override {
    return checked_multiply(filter_.workspace_bytes(), cpu_.threads(), "the workspace of all threads");
  }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    return submit(queue, devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Filter2dRun& run) const {
    const RowWindow input{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                          run.input_rows};
    const typename BoxTiles::Output output{
        run.output.impl()->host() + run.output_offset_bytes, run.output_stride_bytes, run.output_first,
        size_of(task.problem.output) >= 4 && run.output_rows * run.output_stride_bytes >= streamed_bytes};
    std::byte* const workspace = run.workspace.impl()->host();
    if (run.output_rows == 0) return;
    const kernels::Tiling tiling = filter_.tiling(run.output_rows, cpu_.threads());
    cpu_.parallel_for(tiling.count(), [&](std::int64_t i, int slot) {
      filter_.run(input, output, tiling[i], workspace + slot * filter_.workspace_bytes());
    });
  }

  CpuDevice& cpu_;
  BoxTiles filter_;
};

class BoxCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/box/cpu.1"; }

  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (device.kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    return box_refusal(task);
  }

  ErrorBound bound(const Filter2dTask& task) const override { return box_bound(task); }
  double operations(const Filter2dTask& task, const devices::Device&) const override { return box_operations(task); }

  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const override {
    const auto& cpu = dynamic_cast<const CpuDevice&>(device);
    return with_filter(task, [&](const auto& filter) {
      return checked_multiply(filter.workspace_bytes(), cpu.threads(), "the workspace of all threads");
    });
  }

  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    auto& cpu = dynamic_cast<CpuDevice&>(*device);
    return with_filter(task, [&]<typename BoxTiles>(BoxTiles filter) -> std::unique_ptr<Filter2dPlanBody> {
      return std::make_unique<Plan<BoxTiles>>(std::move(filter), cpu);
    });
  }
};

}  // namespace

const Filter2dSolver& box_cpu() {
  static const BoxCpu solver;
  return solver;
}

}  // namespace omniconv::solvers
