#include "operations/filter2d/cpu_plan.h"

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/opacity.h"

namespace omniconv::operations {
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
  Plan(const Filter2dTask& task, const DevicePointer& device, std::shared_ptr<const kernels::TileFilter<Real>> filter)
      : Filter2dPlanBody(task), device_(device), cpu_(dynamic_cast<CpuDevice&>(*device)), filter_(std::move(filter)) {
    if (task.weights.alpha_rule == AlphaRule::copied) opacity_copy_ = OpacityCopy(task);
  }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Filter2dRun& run) const {
    const kernels::Tiling tiling = filter_->tiling(run.output_rows, cpu_.threads());
    const RowWindow input{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                          run.input_rows};
    const typename kernels::TileFilter<Real>::Output output{
        run.output.impl()->host() + run.output_offset_bytes, run.output_stride_bytes, run.output_first,
        size_of(task().problem.output) >= 4 && run.output_rows * run.output_stride_bytes >= streamed_bytes};
    std::byte* const workspace = run.workspace.impl()->host();
    cpu_.parallel_for(tiling.count(), [&](std::int64_t i, int slot) {
      filter_->run(input, output, tiling[i], workspace + slot * filter_->workspace_bytes());
      if (opacity_copy_) copy_opacity(input, output, tiling[i]);
    });
  }

  // Into the pixels whose opacity the tile holds.
  void copy_opacity(const RowWindow& input, const typename kernels::TileFilter<Real>::Output& output,
                    const kernels::Tile& tile) const {
    const std::int64_t c = task().problem.c, alpha = task().problem.alpha_channel;
    const auto pixels_before = [&](std::int64_t element) { return divide_up(element - alpha, c); };
    const std::int64_t first = pixels_before(tile.element), last = pixels_before(tile.element + tile.elements);
    for (std::int64_t row = tile.row; row < tile.row + tile.rows; ++row)
      opacity_copy_->run(input, output.first + row, first, last - first, output.data + row * output.stride_bytes);
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  std::shared_ptr<const kernels::TileFilter<Real>> filter_;
  std::optional<OpacityCopy> opacity_copy_;
};

// `method`: what a TileFilter asks for beside the task.
template <typename Real, typename Method>
Offer offer_of_reals(const Filter2dTask& task, const DevicePointer& device, const Method& method, double operations,
                     const ErrorBound& bound) {
  const auto filter = std::make_shared<const kernels::TileFilter<Real>>(task, method);
  return offer_of(task, {.operations = operations,
                         .bound = bound,
                         .workspace_bytes = workspace_of_all_threads(*filter, dynamic_cast<const CpuDevice&>(*device)),
                         .plan = [=] { return std::make_shared<Plan<Real>>(task, device, filter); }});
}

template <typename Method>
Offer offer_of_any(const Filter2dTask& task, const DevicePointer& device, const Method& method, double operations,
                   const ErrorBound& bound) {
  if (chains_in_f64(task)) return offer_of_reals<double>(task, device, method, operations, bound);
  return offer_of_reals<float>(task, device, method, operations, bound);
}

}  // namespace

Offer cpu_offer(const Filter2dTask& task, const DevicePointer& device, CpuMethod method, double operations,
                const ErrorBound& bound) {
  if (method == CpuMethod::byte_dots) return offer_of_reals<std::uint8_t>(task, device, false, operations, bound);
  return offer_of_any(task, device, method == CpuMethod::rows_first, operations, bound);
}

Offer cpu_offer(const Filter2dTask& task, const DevicePointer& device, const kernels::Products& products,
                double operations, const ErrorBound& bound) {
  return offer_of_any(task, device, products, operations, bound);
}

}  // namespace omniconv::operations
