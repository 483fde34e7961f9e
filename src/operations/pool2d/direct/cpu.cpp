// Pooling on the CPU: rows of the output, or backward of the input, by vectors along columns, planes or channels.
#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"
#include "operations/pool2d/direct/rows.h"
#include "operations/pool2d/pool2d.h"

namespace omniconv {

kernels::PoolWork kernels::pool_work(const Pool2dShape& g, DataType type, bool backward) {
  const PoolAxis &rows = g.rows, &columns = g.columns;
  const auto of = [&](PoolRows forward_rows, PoolRows backward_rows, std::int64_t count, std::int64_t row_elements) {
    return PoolWork{backward ? backward_rows : forward_rows, count, row_elements};
  };
  const std::int64_t planes = g.n * g.c, lanes = pool_lanes(type), height = backward ? rows.extent : rows.outputs,
                     width = backward ? columns.extent : columns.outputs;
  const auto is_whole = [](const PoolAxis& axis) {
    return axis.taps == axis.extent && axis.pad == 0 && axis.outputs == 1;
  };
  if (g.nhwc) return of(pool_channels_forward, pool_channels_backward, g.n * height, width * g.c);
  if (is_whole(rows) && is_whole(columns)) return of(pool_global_forward, pool_global_backward, planes, height * width);
  if (width < lanes) return of(pool_planes_forward, pool_planes_backward, divide_up(planes, lanes) * height, 0);
  return of(pool_columns_forward, pool_columns_backward, planes * height, width);
}

namespace operations {
namespace {

// Where much is written, rows are made in memory of a thread's own, which stays in its cache, and copied past the
// caches from there: half of what is written is not read before.
struct Staging {
  std::int64_t rows = 0;  // at a time; 0: none
  std::int64_t elements = 0;

  std::int64_t bytes_of_thread(const Pool2dProblem& problem) const {
    const std::int64_t indices = has_indices(problem) && !problem.backward ? elements * 4 : 0;
    return round_up(elements * size_of(problem.type), 64) + round_up(indices, 64);
  }
};
Staging staging_for(const Pool2dProblem& problem, const kernels::PoolWork& work) {
  constexpr std::int64_t least_written = std::int64_t{16} << 20, wanted = 1 << 13,
                         most = 1 << 16;  // elements of a thread
  if (work.row_elements == 0 || work.row_elements > most) return {};
  if (work.count * work.row_elements * size_of(problem.type) < least_written) return {};
  const std::int64_t rows = std::max<std::int64_t>(1, wanted / work.row_elements);
  return {rows, rows * work.row_elements};
}

class Plan final : public Pool2dPlanBody {
 public:
  Plan(const Pool2dProblem& problem, const DevicePointer& device, const kernels::PoolWork& work, const Staging& staging)
      : Pool2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)),
        shape_(problem),
        work_(work),
        staging_(staging) {
    // Work is shared out in parts of some microseconds.
    constexpr double part_bytes = 1 << 17;
    const double row_bytes = least_bytes(problem) / static_cast<double>(work_.count);
    part_ = static_cast<std::int64_t>(std::clamp(part_bytes / row_bytes, 1.0, 0x1p40));
  }

  void append(devices::Sequence& sequence, const Pool2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Pool2dRun& run) const {
    kernels::PoolArrays arrays{&shape_, problem().type, host(run.x), host(run.y),
                               reinterpret_cast<std::int32_t*>(host(run.indices))};
    const auto reading = [&](const Operand& array, std::int64_t bytes) {
      return kernels::PoolReading{host(array), bytes, bytes / work_.count};
    };
    const std::int64_t size = size_of(problem().type), outputs = shape_.y_elements();
    arrays.reading[0] =
        problem().backward ? reading(run.y, outputs * size) : reading(run.x, shape_.x_elements() * size);
    if (problem().backward && has_indices(problem())) arrays.reading[1] = reading(run.indices, outputs * 4);
    const std::int64_t own = staging_.bytes_of_thread(problem());
    cpu_.parallel_for(divide_up(work_.count, part_), [&](std::int64_t i, int slot) {
      const std::int64_t first = i * part_, end = std::min(work_.count, first + part_);
      if (staging_.rows == 0) return work_.rows(arrays, first, end);
      for (std::int64_t row = first; row < end; row += staging_.rows)
        make_staged(arrays, row, std::min(end, row + staging_.rows), host({run.workspace, slot * own}));
      kernels::pool_stream_done();
    });
  }

  void make_staged(const kernels::PoolArrays& arrays, std::int64_t first, std::int64_t end, std::byte* own) const {
    const std::int64_t size = size_of(arrays.type), before = first * work_.row_elements,
                       elements = (end - first) * work_.row_elements;
    kernels::PoolArrays staged = arrays;
    staged.written = before;
    (problem().backward ? staged.x : staged.y) = own;
    std::byte* const own_indices = own + round_up(staging_.elements * size, 64);
    const bool writes_indices = has_indices(problem()) && !problem().backward;
    if (writes_indices) staged.indices = reinterpret_cast<std::int32_t*>(own_indices);
    work_.rows(staged, first, end);
    kernels::pool_stream((problem().backward ? arrays.x : arrays.y) + before * size, own, elements * size);
    if (writes_indices)
      kernels::pool_stream(reinterpret_cast<std::byte*>(arrays.indices + before), own_indices, elements * 4);
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Pool2dShape shape_;
  kernels::PoolWork work_;
  Staging staging_;
  std::int64_t part_;
};

class DirectCpu final : public Pool2dSolver {
 public:
  std::string_view id() const override { return "pool2d/direct/cpu.1"; }
  Answer offer(const Pool2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    if (std::string reason = tuning_refusal(request); !reason.empty()) return reason;
    const kernels::PoolWork work = kernels::pool_work(Pool2dShape(problem), problem.type, problem.backward);
    Staging staging = staging_for(problem, work);
    const std::int64_t limit = request.max_workspace_bytes, threads = device->info().compute_units;
    if (limit >= 0 && staging.bytes_of_thread(problem) > limit / threads) staging = {};
    // An element of a window takes some five instructions of a vector, of which two fill the time of a multiply-add.
    constexpr double element = 3;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem), element * window_elements(problem))},
        .bound = pool2d_bound(problem),
        .workspace_bytes = threads * staging.bytes_of_thread(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, device, work, staging); },
    };
  }
};

}  // namespace

const Pool2dSolver& pool2d_direct_cpu() {
  static const DirectCpu solver;
  return solver;
}

}  // namespace operations
}  // namespace omniconv
