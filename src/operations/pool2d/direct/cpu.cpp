// Pooling on the CPU: rows of y, or backward of dx, made by vector code and shared out to threads.
#include <algorithm>
#include <numeric>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/host_operand.h"
#include "operations/pool2d/direct/planes.h"
#include "operations/pool2d/pool2d.h"
#include "vector/stream.h"

namespace omniconv {

kernels::PoolPlanes::PoolPlanes(const Pool2dProblem& problem)
    : pooling(problem.pooling), type(problem.type), backward(problem.backward) {
  const Pool2dShape shape(problem);
  rows = shape.rows;
  columns = shape.columns;
  planes = shape.nhwc ? shape.n : shape.n * shape.c;
  depth = shape.nhwc ? shape.c : 1;
  const auto is_whole = [](const PoolAxis& axis) {
    return axis.outputs == 1 && axis.taps == axis.extent && axis.pad == 0;
  };
  const auto is_inside = [](const PoolAxis& axis) {
    return axis.pad == 0 && axis.begin(axis.outputs - 1) + axis.taps <= axis.extent;
  };
  if (pooling == Pooling::average_inside && is_inside(rows) && is_inside(columns)) pooling = Pooling::average;
  form = PoolForm::lines;
  if (depth == 1 && is_whole(rows) && is_whole(columns)) {
    const std::int64_t elements = rows.extent * columns.extent;
    columns = {elements, elements, elements, 0, 1};
    rows = {1, 1, 1, 0, 1};
    form = PoolForm::whole;
  } else if (type == DataType::f32 && pooling != Pooling::average_inside) {
    constexpr std::int64_t lanes = 16;  // of the longest vectors
    if (depth >= lanes && rows.taps * columns.taps <= most_pool_taps)
      form = PoolForm::channels;
    else if (depth == 1 && columns.stride == 2 && (columns.taps == 2 || columns.taps == 3) &&
             columns.pad <= columns.taps - 2 && columns.outputs > 1)
      form = PoolForm::columns;
  }
  first_position = columns.pad / columns.stride;
  positions = (columns.pad + columns.extent - 1) / columns.stride - first_position + 1;
}

bool kernels::PoolPlanes::can_stream() const {
  return form == PoolForm::channels && depth % 16 == 0 && (backward || rows.taps * columns.taps <= pool_taps_at_once);
}

std::int64_t kernels::PoolPlanes::units() const {
  return planes * (backward ? rows.extent : rows.outputs);
}

std::int64_t kernels::PoolPlanes::unit_elements() const {
  return depth * (backward ? columns.extent : columns.outputs);
}

namespace operations {
namespace {

void make_units(const kernels::PoolPlanes& planes, const kernels::PoolArrays& arrays, std::int64_t first,
                std::int64_t end) {
  switch (planes.form) {
    case kernels::PoolForm::whole: return kernels::make_pool_whole(planes, arrays, first, end);
    case kernels::PoolForm::channels: return kernels::make_pool_channels(planes, arrays, first, end);
    case kernels::PoolForm::columns: return kernels::make_pool_columns(planes, arrays, first, end);
    case kernels::PoolForm::lines: return kernels::make_pool_lines(planes, arrays, first, end);
  }
}

// Where much is written, it is written past the caches, which spares reading what is overwritten.
bool writes_much(const Pool2dProblem& problem, const kernels::PoolPlanes& planes) {
  constexpr std::int64_t least_written = std::int64_t{16} << 20;
  return planes.unit_elements() >= divide_up(least_written / size_of(problem.type), planes.units());
}

// Units are made in memory of a thread's own, which stays in its cache, and copied from there.
struct Staging {
  std::int64_t units = 0;  // at a time; 0: none
  std::int64_t elements = 0;

  std::int64_t bytes(const Pool2dProblem& problem) const {
    const std::int64_t indices = has_indices(problem) && !problem.backward ? elements * 4 : 0;
    return round_up(elements * size_of(problem.type), 64) + round_up(indices, 64);
  }
  // While units are made, those before them wait to be copied: a load of what has just been stored in other pieces
  // waits until that is in the cache, behind all that goes to memory.
  std::int64_t bytes_of_thread(const Pool2dProblem& problem) const { return 2 * bytes(problem); }
};
Staging staging_for(const Pool2dProblem& problem, const kernels::PoolPlanes& planes) {
  constexpr std::int64_t wanted = 1 << 10, most = 1 << 16;  // elements
  const std::int64_t elements = planes.unit_elements();
  if (elements > most || !writes_much(problem, planes)) return {};
  // Whole cache lines, so that none is written in parts.
  constexpr std::int64_t line = 32;  // elements, or more than a line
  std::int64_t units = round_up(std::max<std::int64_t>(1, wanted / elements), line / std::gcd(line, elements));
  if (units * elements > most) units = 1;
  return {units, units * elements};
}

class Plan final : public Pool2dPlanBody {
 public:
  Plan(const Pool2dProblem& problem, const DevicePointer& device, const kernels::PoolPlanes& planes,
       const Staging& staging)
      : Pool2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)),
        planes_(planes),
        staging_(staging),
        streams_(planes.can_stream() && writes_much(problem, planes)) {
    // Work is shared out in parts of some microseconds; what is little, evenly.
    constexpr double most_bytes = 1 << 17, fewest_bytes = 1 << 14;
    const double all_bytes = least_bytes(problem), unit_bytes = all_bytes / static_cast<double>(planes.units()),
                 part_bytes = std::clamp(all_bytes / device->info().compute_units, fewest_bytes, most_bytes);
    part_ = static_cast<std::int64_t>(std::clamp(part_bytes / unit_bytes, 1.0, 0x1p40));
    if (staging.units > 0) part_ = round_up(part_, staging.units);
  }

  void append(devices::Sequence& sequence, const Pool2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Pool2dRun& run) const {
    kernels::PoolArrays arrays{host(run.x), host(run.y), reinterpret_cast<std::int32_t*>(host(run.indices))};
    arrays.streams = streams_ && is_aligned(arrays.x) && is_aligned(arrays.y) && is_aligned(arrays.indices);
    const std::int64_t units = planes_.units(), own = staging_.bytes_of_thread(problem());
    cpu_.parallel_for(divide_up(units, part_), [&](std::int64_t i, int slot) {
      const std::int64_t first = i * part_, end = std::min(units, first + part_);
      if (staging_.units == 0 || arrays.streams)
        make_units(planes_, arrays, first, end);
      else
        make_staged(arrays, first, end, host({run.workspace, slot * own}));
      kernels::stream_fence();
    });
  }
  static bool is_aligned(const void* array) { return reinterpret_cast<std::uintptr_t>(array) % 64 == 0; }

  void make_staged(const kernels::PoolArrays& arrays, std::int64_t first, std::int64_t end, std::byte* own) const {
    const bool backward = problem().backward, writes_indices = has_indices(problem()) && !backward;
    const std::int64_t size = size_of(problem().type), unit_elements = planes_.unit_elements(),
                       indices_at = round_up(staging_.elements * size, 64);
    const auto half = [&](std::int64_t unit) {
      return own + (unit - first) / staging_.units % 2 * staging_.bytes(problem());
    };
    const auto copy = [&](std::int64_t unit) {
      const std::int64_t before = unit * unit_elements, elements = std::min(end - unit, staging_.units) * unit_elements;
      kernels::stream_copy((backward ? arrays.x : arrays.y) + before * size, half(unit), elements * size);
      if (writes_indices)
        kernels::stream_copy(reinterpret_cast<std::byte*>(arrays.indices + before), half(unit) + indices_at,
                             elements * 4);
    };
    std::int64_t unit = first;
    for (; unit < end; unit += staging_.units) {
      kernels::PoolArrays staged = arrays;
      staged.before = unit * unit_elements;
      (backward ? staged.x : staged.y) = half(unit);
      if (writes_indices) staged.indices = reinterpret_cast<std::int32_t*>(half(unit) + indices_at);
      make_units(planes_, staged, unit, std::min(end, unit + staging_.units));
      if (unit > first) copy(unit - staging_.units);
    }
    copy(unit - staging_.units);
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  kernels::PoolPlanes planes_;
  Staging staging_;
  bool streams_;
  std::int64_t part_;
};

class DirectCpu final : public Pool2dSolver {
 public:
  std::string_view id() const override { return "pool2d/direct/cpu.1"; }
  Answer offer(const Pool2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const kernels::PoolPlanes planes(problem);
    Staging staging = staging_for(problem, planes);
    const std::int64_t limit = request.max_workspace_bytes, threads = device->info().compute_units;
    if (limit >= 0 && staging.bytes_of_thread(problem) > limit / threads) staging = {};
    // An element of a window takes some five instructions of a vector, of which two fill the time of a multiply-add.
    constexpr double element = 3;
    return Offer{
        .cost = {std::max(byte_cost(*device) * least_bytes(problem), element * window_elements(problem))},
        .bound = pool2d_bound(problem),
        .workspace_bytes = threads * staging.bytes_of_thread(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, device, planes, staging); },
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
