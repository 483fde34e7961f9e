#include "solvers/filter2d/cpu_plan.h"

#include "core/checked.h"
#include "core/opacity.h"
#include "devices/cpu/cpu_device.h"
#include "solvers/filter2d/cost.h"

namespace omniconv::solvers {
namespace {

using devices::CpuDevice;

// Results larger than this leave the caches before anyone reads them, so they are written past them: where elements
// have four bytes and more, and memory, not arithmetic, limits.
constexpr std::int64_t streamed_bytes = std::int64_t{16} << 20;

template <typename Real>
std::int64_t workspace_of_all_threads(const kernels::TileFilter<Real>& filter, const CpuDevice& cpu) {
  return checked_multiply(filter.workspace_bytes(), cpu.threads(), "the workspace of all threads");
}

template <typename Real>
class Plan final : public Filter2dPlanBody {
 public:
  // `method`: what a TileFilter asks for beside the task.
  template <typename Method>
  Plan(const Filter2dTask& the_task, CpuDevice& cpu, const Method& method) : cpu_(cpu), filter_(the_task, method) {
    if (the_task.weights.alpha_rule == AlphaRule::copied) opacity_copy_ = OpacityCopy(the_task);
  }

  std::int64_t workspace_bytes() const override { return workspace_of_all_threads(filter_, cpu_); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    return submit(queue, devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Filter2dRun& run) const {
    const kernels::Tiling tiling = filter_.tiling(run.output_rows, cpu_.threads());
    const RowWindow input{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                          run.input_rows};
    const typename kernels::TileFilter<Real>::Output output{
        run.output.impl()->host() + run.output_offset_bytes, run.output_stride_bytes, run.output_first,
        size_of(task.problem.output) >= 4 && run.output_rows * run.output_stride_bytes >= streamed_bytes};
    std::byte* const workspace = run.workspace.impl()->host();
    cpu_.parallel_for(tiling.count(), [&](std::int64_t i, int slot) {
      filter_.run(input, output, tiling[i], workspace + slot * filter_.workspace_bytes());
      if (opacity_copy_) copy_opacity(input, output, tiling[i]);
    });
  }

  // Into the pixels whose opacity the tile holds.
  void copy_opacity(const RowWindow& input, const typename kernels::TileFilter<Real>::Output& output,
                    const kernels::Tile& tile) const {
    const std::int64_t c = task.problem.c, alpha = task.problem.alpha_channel;
    const auto pixels_before = [&](std::int64_t element) { return divide_up(element - alpha, c); };
    const std::int64_t first = pixels_before(tile.element), last = pixels_before(tile.element + tile.elements);
    for (std::int64_t row = tile.row; row < tile.row + tile.rows; ++row)
      opacity_copy_->run(input, output.first + row, first, last - first, output.data + row * output.stride_bytes);
  }

  CpuDevice& cpu_;
  kernels::TileFilter<Real> filter_;
  std::optional<OpacityCopy> opacity_copy_;
};

template <typename Method>
std::int64_t workspace_of_reals(const Filter2dTask& task, const devices::Device& device, const Method& method) {
  const auto& cpu = dynamic_cast<const CpuDevice&>(device);
  if (chains_in_f64(task)) return workspace_of_all_threads(kernels::TileFilter<double>(task, method), cpu);
  return workspace_of_all_threads(kernels::TileFilter<float>(task, method), cpu);
}

template <typename Method>
std::unique_ptr<Filter2dPlanBody> plan_of_reals(const Filter2dTask& task, devices::Device& device,
                                                const Method& method) {
  auto& cpu = dynamic_cast<CpuDevice&>(device);
  if (chains_in_f64(task)) return std::make_unique<Plan<double>>(task, cpu, method);
  return std::make_unique<Plan<float>>(task, cpu, method);
}

}  // namespace

std::int64_t cpu_workspace_bytes(const Filter2dTask& task, const devices::Device& device, CpuMethod method) {
  if (method != CpuMethod::byte_dots) return workspace_of_reals(task, device, method == CpuMethod::rows_first);
  return workspace_of_all_threads(kernels::TileFilter<std::uint8_t>(task, false),
                                  dynamic_cast<const CpuDevice&>(device));
}

std::int64_t cpu_workspace_bytes(const Filter2dTask& task, const devices::Device& device,
                                 const kernels::Products& products) {
  return workspace_of_reals(task, device, products);
}

std::unique_ptr<Filter2dPlanBody> make_cpu_plan(const Filter2dTask& task,
                                                const std::shared_ptr<devices::Device>& device, CpuMethod method) {
  if (method != CpuMethod::byte_dots) return plan_of_reals(task, *device, method == CpuMethod::rows_first);
  return std::make_unique<Plan<std::uint8_t>>(task, dynamic_cast<CpuDevice&>(*device), false);
}

std::unique_ptr<Filter2dPlanBody> make_cpu_plan(const Filter2dTask& task,
                                                const std::shared_ptr<devices::Device>& device,
                                                const kernels::Products& products) {
  return plan_of_reals(task, *device, products);
}

}  // namespace omniconv::solvers
