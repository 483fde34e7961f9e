// Magnitudes on the CPU: tiles of the output over the arena's threads.
#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "kernels/cpu/gradient_tiles.h"
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/gradient/gradient.h"

namespace omniconv::solvers {
namespace {

using devices::CpuDevice;

// Results larger than this leave the caches before anyone reads them, so they are written past them.
constexpr std::int64_t streamed_bytes = std::int64_t{16} << 20;

template <typename Tiles>
class Plan final : public Filter2dPlanBody {
 public:
  Plan(CpuDevice& cpu, Tiles tiles) : cpu_(cpu), tiles_(std::move(tiles)) {}

  std::int64_t workspace_bytes() const override {
    return checked_multiply(tiles_.workspace_bytes(), cpu_.threads(), "the workspace of all threads");
  }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    return submit(queue, devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Filter2dRun& run) const {
    const kernels::Tiling tiling = tiles_.tiling(run.output_rows, cpu_.threads());
    const RowWindow input{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                          run.input_rows};
    const kernels::MagnitudeOutput output{run.output.impl()->host() + run.output_offset_bytes, run.output_stride_bytes,
                                          run.output_first,
                                          run.output_rows * run.output_stride_bytes >= streamed_bytes};
    std::byte* const workspace = run.workspace.impl()->host();
    cpu_.parallel_for(tiling.count(), [&](std::int64_t i, int slot) {
      tiles_.run(input, output, tiling[i], workspace + slot * tiles_.workspace_bytes());
    });
  }

  CpuDevice& cpu_;
  Tiles tiles_;
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

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/gradient/cpu.1"; }

  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (device.kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
    return gradient_refusal(task);
  }

  ErrorBound bound(const Filter2dTask& task) const override { return gradient_bound(task); }
  // (A single kernel is refused, and needs a number only for its place in lists.)
  double operations(const Filter2dTask& task, const devices::Device&) const override {
    constexpr double differences = 34, root = 20;
    if (!task.second || kernels::difference_pair(task)) return differences;
    return kernel_operations(task, task.weights) + kernel_operations(task, *task.second) + root;
  }

  std::int64_t workspace_bytes(const Filter2dTask& task, const devices::Device& device) const override {
    const auto& cpu = dynamic_cast<const CpuDevice&>(device);
    return with_tiles(task, [&](const auto& tiles) {
      return checked_multiply(tiles.workspace_bytes(), cpu.threads(), "the workspace of all threads");
    });
  }

  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    auto& cpu = dynamic_cast<CpuDevice&>(*device);
    return with_tiles(task, [&]<typename Tiles>(Tiles tiles) -> std::unique_ptr<Filter2dPlanBody> {
      return std::make_unique<Plan<Tiles>>(cpu, std::move(tiles));
    });
  }
};

}  // namespace

const Filter2dSolver& gradient_cpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
