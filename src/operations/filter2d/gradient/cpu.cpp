// Magnitudes on the CPU: tiles of the output over the device's threads.
#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/gradient/gradient.h"
#include "operations/filter2d/vector/gradient_tiles.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;

// Results larger than this leave the caches before anyone reads them, so they are written past them.
constexpr std::int64_t streamed_bytes = std::int64_t{16} << 20;

template <typename Tiles>
class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, const DevicePointer& device, std::shared_ptr<const Tiles> tiles)
      : Filter2dPlanBody(task), device_(device), cpu_(dynamic_cast<CpuDevice&>(*device)), tiles_(std::move(tiles)) {}

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Filter2dRun& run) const {
    const kernels::Tiling tiling = tiles_->tiling(run.output_rows, cpu_.threads());
    const RowWindow input{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                          run.input_rows};
    const kernels::MagnitudeOutput output{run.output.impl()->host() + run.output_offset_bytes, run.output_stride_bytes,
                                          run.output_first,
                                          run.output_rows * run.output_stride_bytes >= streamed_bytes};
    std::byte* const workspace = run.workspace.impl()->host();
    cpu_.parallel_for(tiling.count(), [&](std::int64_t i, int slot) {
      tiles_->run(input, output, tiling[i], workspace + slot * tiles_->workspace_bytes());
    });
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  std::shared_ptr<const Tiles> tiles_;
};

// Calls `with` with the tiles that serve the task.
template <typename With>
auto with_tiles(const Filter2dTask& task, const With& with) {
  if (const auto pair = kernels::difference_pair(task)) return with(kernels::DifferenceTiles(task, *pair));
  const bool x_rows_first = rows_first(task, task.weights), y_rows_first = rows_first(task, *task.second);
  if (task.weights.accumulate == DataType::f64)
    return with(kernels::PairTiles<double>(task, x_rows_first, y_rows_first));
  return with(kernels::PairTiles<float>(task, x_rows_first, y_rows_first));
}

double kernel_operations(const Filter2dTask& task, const Weights& weights) {
  const auto r = static_cast<double>(weights.r), s = static_cast<double>(weights.s);
  return cpu_pixel_operations(task) +
         cpu_chain_operations(task) * (rows_first(task, weights) ? 2 * r + 3.5 * s : 1.15 * r * s);
}

class GradientCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/gradient/cpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    const auto* const cpu = dynamic_cast<const CpuDevice*>(device.get());
    if (cpu == nullptr) return "runs on the CPU alone";
    if (std::string reason = gradient_refusal(task); !reason.empty()) return reason;
    return with_tiles(task, [&]<typename Tiles>(Tiles made) {
      const auto tiles = std::make_shared<const Tiles>(std::move(made));
      return offer_of(task, {.operations = operations(task),
                             .bound = gradient_bound(task),
                             .workspace_bytes = checked_multiply(tiles->workspace_bytes(), cpu->threads(),
                                                                 "the workspace of all threads"),
                             .plan = [=] { return std::make_shared<Plan<Tiles>>(task, device, tiles); }});
    });
  }

 private:
  static double operations(const Filter2dTask& task) {
    constexpr double differences = 34, root = 20;
    if (kernels::difference_pair(task)) return differences;
    return kernel_operations(task, task.weights) + kernel_operations(task, *task.second) + root;
  }
};

}  // namespace

const Filter2dSolver& gradient_cpu() {
  static const GradientCpu solver;
  return solver;
}

}  // namespace omniconv::operations
