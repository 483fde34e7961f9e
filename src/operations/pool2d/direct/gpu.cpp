// Pooling on OpenCL and CUDA devices: blocks of outputs, planes that one window covers, or, where neither form fits,
// one output after the other.
#include <bit>
#include <numeric>
#include <optional>

#include "core/checked.h"
#include "embedded/gpu_blocks.kernel.h"
#include "embedded/gpu_planes.kernel.h"
#include "embedded/gpu_vectors.kernel.h"
#include "embedded/pool2d.kernel.h"
#include "operations/gpu_limits.h"
#include "operations/pool2d/pool2d.h"
#include "operations/pool2d/shape.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128;

enum class Form { blocks, planes, any };

// Of planes: the reads of a work item that are in flight together; backward its stores.
std::int64_t at_once(const Pool2dProblem& problem) {
  return problem.backward ? 8 : 4;
}

struct Tiling {
  Form form = Form::any;
  std::int64_t group = operations::group;
  std::int64_t rows = 1, columns = 1, channels = 1, x_vector = 1, y_vector = 1, lanes = 1;
  bool unrolls_taps = true, within_rows = false, within_columns = false;
  std::int64_t stride_h = 1, stride_w = 1;  // of one window alone the stride is free
};

// The largest power of two that divides a number and is at most `most`.
std::int64_t power_of_two_in(std::int64_t number, std::int64_t most) {
  return std::min(number & -number, most);
}

// Elements that are read or written at once: 16 bytes; of 32-bit maxima's indices, too. 16-bit maxima take eight where
// that makes up for indices that are two vectors: of larger windows, and of channels backward.
std::int64_t most_at_once(const Pool2dProblem& problem) {
  const std::int64_t of_vector = 16 / size_of(problem.type);
  if (!has_indices(problem)) return of_vector;
  const bool wide = problem.backward ? problem.layout == Layout::nhwc : problem.r * problem.s > 4;
  return wide ? of_vector : 4;
}

std::optional<Tiling> planes_tiling(const Pool2dProblem& problem, const devices::Device& device) {
  const Pool2dShape shape(problem);
  const std::int64_t size = size_of(problem.type);
  if (shape.nhwc || shape.rows.outputs != 1 || shape.columns.outputs != 1) return std::nullopt;
  if (problem.pad_top + problem.pad_left + problem.pad_bottom + problem.pad_right != 0) return std::nullopt;
  if (problem.r != problem.h || problem.s != problem.w) return std::nullopt;
  Tiling tiling{.form = Form::planes};
  if (problem.backward) {
    if (problem.r >= std::int64_t{1} << 15 || problem.s >= std::int64_t{1} << 15) return std::nullopt;
    tiling.x_vector = 16 / size;
    while (tiling.x_vector > problem.r * problem.s) tiling.x_vector /= 2;
    return tiling;
  }
  const std::int64_t most_bytes = std::min<std::int64_t>(32 << 10, device.info().local_memory_bytes);
  if (problem.r * problem.s > 1024) return std::nullopt;
  const std::int64_t plane = problem.r * problem.s * size + problem.r * problem.s * size / 32 + 1;
  while (tiling.group > 32 && tiling.group * plane > most_bytes) tiling.group /= 2;
  if (tiling.group * plane > most_bytes) return std::nullopt;
  tiling.x_vector = problem.r * problem.s % 2 != 0 ? 4 : 1;
  return tiling;
}

// Whether blocks so large keep their elements in registers, and their text short.
bool is_moderate(const Pool2dProblem& problem, const Tiling& t) {
  if (problem.backward) {
    const auto windows = [](std::int64_t length, std::int64_t taps, std::int64_t stride, std::int64_t pad) {
      return (pad + length - 1) / stride + (taps - 1 - pad) / stride + 1;
    };
    const std::int64_t held = windows(t.rows, problem.r, t.stride_h, problem.pad_top) *
                              windows(t.columns, problem.s, t.stride_w, problem.pad_left) * t.channels *
                              (has_indices(problem) ? 2 : 1);
    const bool narrow = problem.layout == Layout::nhwc && size_of(problem.type) == 2;
    const std::int64_t most_held = has_indices(problem) && narrow ? 64 : 40;
    return held <= most_held && t.columns * t.channels <= 32 && t.rows * t.columns * t.channels <= 256;
  }
  const std::int64_t span = ((t.columns - 1) * t.stride_w + problem.s) * t.channels;
  const std::int64_t taps = problem.s * t.columns * t.channels * (t.unrolls_taps ? problem.r * t.rows : 1);
  return span <= 64 && taps <= 512;
}

// Whether all that blocks of so many elements read along an axis is there.
bool is_within(const PoolAxis& axis, std::int64_t stride, std::int64_t of_block, bool backward) {
  if (axis.pad != 0) return false;
  if (backward)  // an element's windows begin in its block
    return axis.taps <= stride && divide_up(axis.extent, of_block) * of_block / stride <= axis.outputs;
  return axis.outputs % of_block == 0 && (axis.outputs - 1) * stride + axis.taps <= axis.extent;
}

// The first that is moderate, from the longest vectors on.
std::optional<Tiling> moderate_blocks(const Pool2dProblem& problem) {
  const Pool2dShape shape(problem);
  constexpr std::int64_t most_extent = std::int64_t{1} << 28, most_window = std::int64_t{1} << 10;
  for (const std::int64_t extent : {problem.c, problem.h, problem.w})
    if (extent > most_extent) return std::nullopt;
  if (std::max({problem.r, problem.s, problem.stride_h, problem.stride_w}) > most_window) return std::nullopt;
  if (has_indices(problem) && problem.r * problem.s > std::int64_t{1} << 16) return std::nullopt;  // indices in pairs
  Tiling t{.form = Form::blocks};
  t.stride_h = shape.rows.outputs == 1 ? problem.r : problem.stride_h;
  t.stride_w = shape.columns.outputs == 1 ? problem.s : problem.stride_w;
  const bool overlap = problem.r > t.stride_h;
  const std::int64_t size = size_of(problem.type);
  for (std::int64_t most = most_at_once(problem); most >= 1; most /= 2) {
    if (shape.nhwc) {
      t.channels = t.x_vector = t.y_vector = power_of_two_in(problem.c, most);
      t.columns = problem.backward ? t.stride_w : 1;
    } else if (problem.backward) {
      t.x_vector = power_of_two_in(problem.w, std::min(most * 2, 16 / size));
      t.columns = std::lcm(t.x_vector, t.stride_w);
      t.y_vector = power_of_two_in(std::gcd(shape.columns.outputs, t.columns / t.stride_w), most);
    } else {
      t.columns = t.y_vector = power_of_two_in(shape.columns.outputs, most);
      t.x_vector = power_of_two_in(std::gcd(problem.w, t.columns * t.stride_w), 16 / size);
    }
    const std::int64_t line = t.columns * t.channels;
    t.unrolls_taps = true;
    // Rows that windows share are read once; short lines want more loads in flight.
    if (problem.backward) {
      for (const std::int64_t rows : {4, 2, 1}) {
        t.rows = std::max(rows / t.stride_h, std::int64_t{1}) * t.stride_h;
        if (shape.nhwc && rows == 4 && !overlap) continue;
        if (is_moderate(problem, t)) return t;
      }
      continue;
    }
    for (t.rows = std::max<std::int64_t>(overlap ? 2 : 1, 4 / line); t.rows >= 1; t.rows /= 2)
      if (is_moderate(problem, t) && (overlap || problem.r * problem.s * line <= 128)) return t;
    t.rows = 1, t.unrolls_taps = false;
    if (is_moderate(problem, t)) return t;
  }
  return std::nullopt;
}

std::optional<Tiling> blocks_tiling(const Pool2dProblem& problem) {
  std::optional<Tiling> tiling = moderate_blocks(problem);
  if (!tiling) return tiling;
  const Pool2dShape shape(problem);
  tiling->within_rows = is_within(shape.rows, tiling->stride_h, tiling->rows, problem.backward);
  tiling->within_columns = is_within(shape.columns, tiling->stride_w, tiling->columns, problem.backward);
  return tiling;
}

// Of a window that one work item would read for long: so many that neighbours read neighbouring elements, NHWC of
// channels.
std::int64_t lanes_for(const Pool2dProblem& problem) {
  const std::int64_t window = checked_multiply(problem.r, problem.s, "the window");
  if (window < 128) return 1;
  const std::int64_t lanes = window < 8192 ? 32 : group;
  return problem.layout == Layout::nhwc ? lanes / 4 : lanes;
}

// A number below 2^31 divided by `number`, a number below 2^31 too: (n * factor) >> shift. For 2^k the least power of
// two not below number, factor is 2^(31 + k) / number rounded up: off by e / number, e < 2^k, and n e < 2^(31 + k).
struct Divisor {
  explicit Divisor(std::int64_t by) : number(static_cast<std::uint32_t>(by)) {
    shift = 31 + static_cast<std::uint32_t>(std::bit_width(number - 1));
    factor = static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + number - 1) / number);
  }
  std::uint32_t number, factor = 0, shift = 0;
};

// As the kernels have them.
struct Extents {
  std::int64_t n, c, h, w, p, q;
};
struct Blocks {
  Divisor lanes, columns, channels, rows;
  std::uint32_t items, step;
};

// How blocks follow each other: those of an image (NHWC) or plane (NCHW), of which a launch takes some.
struct BlockGrid {
  std::int64_t lanes = 1, columns = 1, channels = 1, rows = 1;
  std::int64_t items() const {  // none that could be launched
    std::int64_t all = 1;
    for (const std::int64_t count : {lanes, columns, channels, rows}) all = checked_multiply(all, count, "the blocks");
    return all;
  }
};
BlockGrid grid_of(const Pool2dProblem& problem, const Tiling& tiling) {
  const Pool2dShape shape(problem);
  BlockGrid grid;
  grid.rows = divide_up(problem.backward ? problem.h : shape.rows.outputs, tiling.rows);
  grid.columns = divide_up(problem.backward ? problem.w : shape.columns.outputs, tiling.columns);
  if (!shape.nhwc) return grid;
  // Neighbouring columns, whose windows overlap, are of one group: a line of a cache (or two) of channels side by side.
  const std::int64_t vectors = problem.c / tiling.channels;
  grid.lanes = vectors;
  for (const std::int64_t lanes : {16, 8})
    if (grid.lanes == vectors && vectors % lanes == 0) grid.lanes = lanes;
  grid.channels = vectors / grid.lanes;
  return grid;
}
constexpr std::int64_t most_items = (std::int64_t{1} << 31) - 2 * group;  // of a launch of blocks

Tiling tiling_for(const Pool2dProblem& problem, const devices::Device& device) {
  if (const auto planes = planes_tiling(problem, device)) return *planes;
  if (const auto blocks = blocks_tiling(problem))
    if (grid_of(problem, *blocks).items() <= most_items) return *blocks;
  return {.form = Form::any,
          .lanes = problem.backward ? 1 : lanes_for(problem),
          .stride_h = problem.stride_h,
          .stride_w = problem.stride_w};
}

std::vector<devices::Definition> definitions_of(const Pool2dProblem& problem, const Tiling& tiling) {
  const std::string type = fmt::format("TYPE_{}", name(problem.type));
  const char* const pooling = problem.pooling == Pooling::maximum   ? "POOLING_maximum"
                              : problem.pooling == Pooling::average ? "POOLING_average"
                                                                    : "POOLING_average_inside";
  std::vector<devices::Definition> all = {{"TYPE", type}, {"OUTPUT", type}, {"POOLING", pooling}};
  const auto add = [&](const char* symbol, std::int64_t value) {
    all.push_back({symbol, fmt::format("{}{}", value, value < 1 << 15 ? "" : "L")});  // products are no less wide
  };
  add("BACKWARD", problem.backward ? 1 : 0), add("NHWC", problem.layout == Layout::nhwc ? 1 : 0);
  add("POOL_R", problem.r), add("POOL_S", problem.s), add("STRIDE_H", tiling.stride_h),
      add("STRIDE_W", tiling.stride_w);
  add("PAD_TOP", problem.pad_top), add("PAD_LEFT", problem.pad_left), add("GROUP", tiling.group);
  switch (tiling.form) {
    case Form::blocks:
      add("ROWS", tiling.rows), add("COLUMNS", tiling.columns), add("CHANNELS", tiling.channels);
      add("X_VECTOR", tiling.x_vector), add("Y_VECTOR", tiling.y_vector);
      add("UNROLL_TAPS", tiling.unrolls_taps ? 1 : 0);
      add("WITHIN_ROWS", tiling.within_rows ? 1 : 0), add("WITHIN_COLUMNS", tiling.within_columns ? 1 : 0);
      // 64 registers a work item; for vectors of channels, all of whose rows are in flight at once, 80, or 96 where
      // they are widened.
      add("RESIDENT", problem.layout == Layout::nchw ? 8 : problem.type == DataType::f32 ? 6 : 5);
      break;
    case Form::planes:
      add(problem.backward ? "X_VECTOR" : "WORDS_AT_ONCE", tiling.x_vector);
      add("AT_ONCE", at_once(problem));
      break;
    case Form::any: add("LANES", tiling.lanes); break;
  }
  return all;
}

class Plan final : public Pool2dPlanBody {
 public:
  Plan(const Pool2dProblem& problem, devices::Device& device, const Tiling& tiling)
      : Pool2dPlanBody(problem),
        tiling_(tiling),
        extents_{problem.n, problem.c, problem.h, problem.w, P(problem), Q(problem)},
        grid_(grid_of(problem, tiling)),
        groups_(tiling.form == Form::blocks ? 0 : divide_up(work_items(problem, tiling), tiling.group)) {
    std::string text = std::string(kernels::gemm_elements()) + std::string(pool2d_kernel);
    if (tiling.form != Form::any) text += gpu_vectors_kernel;
    if (tiling.form == Form::blocks) text += gpu_blocks_kernel;
    if (tiling.form == Form::planes) text += gpu_planes_kernel;
    program_ = device.build(text, definitions_of(problem, tiling));
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Pool2dRun& run) const override {
    switch (tiling_.form) {
      case Form::blocks: return append_blocks(sequence, run);
      case Form::planes: return append_groups(sequence, run, problem().backward ? "backward_planes" : "forward_planes");
      case Form::any: return append_groups(sequence, run, problem().backward ? "gradients" : "windows");
    }
  }

 private:
  // x, y and the indices, in whose place y stands where there are none, with their offsets in elements; the extents;
  // and a kernel's own.
  template <typename... Own>
  std::array<devices::KernelArgument, 7 + sizeof...(Own)> arguments(const Pool2dRun& run, const Own&... own) const {
    const std::int64_t size = size_of(problem().type);
    const bool indexed = has_indices(problem());
    return {run.x.buffer.impl().get(),
            run.x.offset_bytes / size,
            run.y.buffer.impl().get(),
            run.y.offset_bytes / size,
            (indexed ? run.indices : run.y).buffer.impl().get(),
            indexed ? run.indices.offset_bytes / 4 : std::int64_t{0},
            std::as_bytes(std::span(&extents_, 1)),
            own...};
  }

  void append_blocks(devices::Sequence& sequence, const Pool2dRun& run) const {
    const std::int64_t items = grid_.items(), most = most_items / items;
    const std::int64_t images = problem().layout == Layout::nhwc ? problem().n : problem().n * problem().c;
    for (std::int64_t first = 0; first < images; first += most) {
      const std::int64_t of_launch = std::min(most, images - first) * items;
      const Blocks blocks{Divisor(grid_.lanes),
                          Divisor(grid_.columns),
                          Divisor(grid_.channels),
                          Divisor(grid_.rows),
                          static_cast<std::uint32_t>(of_launch),
                          static_cast<std::uint32_t>(tiling_.channels)};
      sequence.launch(program_, problem().backward ? "backward" : "forward",
                      {{divide_up(of_launch, tiling_.group) * tiling_.group}, {tiling_.group}},
                      arguments(run, std::as_bytes(std::span(&blocks, 1)), first));
    }
  }

  void append_groups(devices::Sequence& sequence, const Pool2dRun& run, const char* kernel) const {
    launch_groups(groups_, [&](std::int64_t first, std::int64_t groups) {
      const devices::Grid grid{{groups * tiling_.group}, {tiling_.group}};
      if (tiling_.form == Form::planes && problem().backward)
        sequence.launch(program_, kernel, grid, arguments(run, first, tiling_.x_vector));
      else
        sequence.launch(program_, kernel, grid, arguments(run, first));
    });
  }

  // Of the forms that have one for each output, or several.
  static std::int64_t work_items(const Pool2dProblem& problem, const Tiling& tiling) {
    const Pool2dShape shape(problem);
    if (!problem.backward) return checked_multiply(shape.y_elements(), tiling.lanes, "the work items");
    return divide_up(shape.x_elements(), tiling.form == Form::planes ? at_once(problem) * tiling.x_vector : 1);
  }

  Tiling tiling_;
  Extents extents_;
  BlockGrid grid_;       // of blocks
  std::int64_t groups_;  // of the other forms
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public Pool2dSolver {
 public:
  std::string_view id() const override { return "pool2d/direct/gpu.1"; }
  Answer offer(const Pool2dProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is pooled on the CPU, since not every GPU has double precision";
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    const Tiling tiling = tiling_for(problem, *device);
    // An element of a window takes a load, its widening and four instructions more; by itself, its address, too.
    const double element = tiling.form == Form::any ? 24 : 6;
    return Offer{
        .cost = {launch_cost(*device) + byte_cost(*device) * least_bytes(problem) + element * window_elements(problem)},
        .bound = pool2d_bound(problem),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tiling); },
    };
  }
};

}  // namespace

const Pool2dSolver& pool2d_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
