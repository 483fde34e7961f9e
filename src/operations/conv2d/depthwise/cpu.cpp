// Depthwise convolution on the CPU: groups of one channel of x, in all passes.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/depthwise/cpu_planes.h"
#include "operations/conv2d/depthwise/cpu_tiling.h"
#include "operations/conv2d/shape.h"
#include "operations/host_operand.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t most_lanes = 64;  // of any instruction set
// What a window may reach beyond its outputs.
constexpr std::int64_t most_taps = 64, most_reach = 512, most_stride = 16;
// Outputs that are worth a thread's turn, and turns for each thread, so that all end at nearly the same time.
constexpr std::int64_t outputs_at_once = 16384, turns = 8;
// Of the filter: parts of the sums, of no fewer outputs, until so many threads have work. No number of threads is in
// it, since results follow from the parts.
constexpr std::int64_t outputs_of_part = 32768, most_units = 128;

// What one unit of work is: a channel (nchw) or a vector of channels (nhwc) of what is written.
struct Units {
  std::int64_t count, channels, multiplier;
  Units(const Conv2dProblem& problem, std::int64_t lanes) {
    const Conv2dShape g(problem);
    multiplier = g.k_group;
    const bool of_x = problem.pass == Pass::backward_data || (problem.pass == Pass::forward && !g.nhwc);
    channels = of_x ? g.c : g.k;
    count = g.nhwc ? divide_up(channels, lanes) : channels;
  }
};

std::int64_t parts_of(const Conv2dProblem& problem, const DepthwiseTiles& tiles) {
  if (problem.pass != Pass::backward_filter) return 1;
  const std::int64_t units = Units(problem, tiles.lanes).count, turns_of_unit = problem.n * tiles.tiles_down();
  const std::int64_t outputs = problem.n * P(problem) * Q(problem) * (tiles.nhwc ? tiles.lanes : 1);
  return std::clamp<std::int64_t>(std::min(divide_up(most_units, units), outputs / outputs_of_part), 1, turns_of_unit);
}

template <typename Real>
struct Room {
  Real *in, *out, *line, *weights;
};

template <typename Real>
class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const DepthwiseTiles& tiles, std::int64_t parts)
      : Conv2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)),
        g_(problem),
        tiles_(tiles),
        units_(problem, tiles.lanes),
        parts_(parts) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] {
      if (problem().pass == Pass::backward_filter)
        to_filter(run);
      else
        gather(run);
    }));
  }
  // Filters are few, and are read as they lie: their prepared form is a copy.
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    const auto bytes = static_cast<std::size_t>(elements_of(problem()).w * size_of(problem().type));
    sequence.call(devices::HostTask([from, to, bytes] { std::memcpy(host(to), host(from), bytes); }));
  }

 private:
  // A tile of image n: t of its first row and column, and how many there are.
  struct Tile {
    std::int64_t n, row, rows, column, columns;
  };
  // The channels of a stored pixel that a unit's lanes meet: `count` of them, or 1 of nchw.
  struct Channels {
    std::int64_t first, count;
    std::array<std::int64_t, most_lanes> offsets;
    bool adjacent;
  };

  Tile tile(std::int64_t n, std::int64_t i) const {
    const std::int64_t across = tiles_.tiles_along();
    Tile tile{n, tiles_.down.first + i / across * tiles_.rows, 0, tiles_.along.first + i % across * tiles_.columns, 0};
    tile.rows = std::min(tiles_.rows, tiles_.down.last - tile.row);
    tile.columns = std::min(tiles_.columns, tiles_.along.last - tile.column);
    return tile;
  }
  std::int64_t lanes_of(std::int64_t unit) const {
    return g_.nhwc ? std::min(tiles_.lanes, units_.channels - unit * tiles_.lanes) : 1;
  }
  // Lane i is channel (first + i) / divisor * factor + add.
  Channels channels(std::int64_t unit, std::int64_t divisor, std::int64_t factor, std::int64_t add) const {
    const std::int64_t first = g_.nhwc ? unit * tiles_.lanes : unit;
    Channels c{.first = first / divisor * factor + add, .count = lanes_of(unit), .offsets = {}, .adjacent = true};
    if (!g_.nhwc || (divisor == 1 && factor == 1)) return c;
    c.adjacent = false;
    for (std::int64_t i = 0; i < c.count; ++i)
      c.offsets[static_cast<std::size_t>(i)] = (first + i) / divisor * factor + add - c.first;
    return c;
  }
  Room<Real> room(const Conv2dRun& run, int slot) const {
    Real* const all = reinterpret_cast<Real*>(host({run.workspace, 0})) + slot * tiles_.thread_elements();
    return {all, all + tiles_.in_elements, all + tiles_.in_elements + tiles_.out_elements,
            all + tiles_.in_elements + tiles_.out_elements + tiles_.line_elements};
  }

  // Of x or of y; the window's place and its copy are to be set.
  kernels::PlaneWindow<Real> window(bool of_x, std::byte* data, std::int64_t n, const Channels& of) const {
    const std::int64_t channels = of_x ? g_.c : g_.k, columns = of_x ? g_.w : g_.q;
    kernels::PlaneWindow<Real> w{};
    w.type = problem().type;
    w.stored = data + (of_x ? g_.x_at(n, of.first, 0, 0) : g_.y_at(n, of.first, 0, 0)) * size_of(w.type);
    w.rows = of_x ? g_.h : g_.p, w.columns = columns;
    w.row_pitch = columns * (g_.nhwc ? channels : 1), w.column_pitch = g_.nhwc ? channels : 1;
    w.channels = g_.nhwc ? of.count : 0;
    w.offsets = of.adjacent ? nullptr : of.offsets.data();
    return w;
  }
  void fill_input(bool of_x, std::byte* data, const Tile& tile, const Channels& of, const Room<Real>& room) const {
    auto w = window(of_x, data, tile.n, of);
    w.first_row = tile.row * tiles_.down.unit + tiles_.down.low;
    w.window_rows = tiles_.down.reach(tile.rows);
    w.first_column = tile.column * tiles_.along.unit + tiles_.along.low;
    w.window_columns = tiles_.in_columns, w.phases = tiles_.in_phases;
    w.copy = room.in, w.copy_row = tiles_.in_row, w.copy_phase = tiles_.in_phase, w.line = room.line;
    kernels::fill_window(w);
  }

  void gather(const Conv2dRun& run) const;
  void sum_up(const Tile& tile, const Room<Real>& room, bool add) const;
  void load_weights(const std::byte* w, std::int64_t unit, std::int64_t factor, std::int64_t add, Real* to) const;
  kernels::PlaneWindow<Real> output_window(const Conv2dRun& run, const Tile& tile, const Channels& of,
                                           const Room<Real>& room) const;
  void store_output(const Conv2dRun& run, const Tile& tile, const Channels& of, const Room<Real>& room) const;
  void to_filter(const Conv2dRun& run) const;
  void add_part(const Conv2dRun& run, std::int64_t unit, std::int64_t part, const Room<Real>& room) const;
  void store_filter(const Conv2dRun& run, std::int64_t k, std::int64_t place, Real sum) const;

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Conv2dShape g_;
  DepthwiseTiles tiles_;
  Units units_;
  std::int64_t parts_;
};

// Forward, and to the data.
template <typename Real>
void Plan<Real>::gather(const Conv2dRun& run) const {
  const bool forward = problem().pass == Pass::forward;
  const std::int64_t m = units_.multiplier, of_image = tiles_.tiles_down() * tiles_.tiles_along(),
                     count = g_.n * units_.count * of_image;
  const std::int64_t outputs = tiles_.rows * tiles_.columns * (g_.nhwc ? tiles_.lanes : m);
  const std::int64_t together = std::clamp<std::int64_t>(outputs_at_once / outputs, 1,
                                                         std::max<std::int64_t>(count / (turns * cpu_.threads()), 1));
  cpu_.parallel_for(divide_up(count, together), [&](std::int64_t turn, int slot) {
    const Room<Real> room = this->room(run, slot);
    for (std::int64_t i = turn * together; i < std::min((turn + 1) * together, count); ++i) {
      const std::int64_t unit = i / of_image % units_.count;
      const Tile tile = this->tile(i / of_image / units_.count, i % of_image);
      if (forward && g_.nhwc) {
        kernels::fetch_window(output_window(run, tile, channels(unit, 1, 1, 0), room));
        fill_input(true, host(run.x), tile, channels(unit, m, 1, 0), room);
        load_weights(host(run.w), unit, 1, 0, room.weights);
        sum_up(tile, room, false);
        store_output(run, tile, channels(unit, 1, 1, 0), room);
      } else if (forward) {
        fill_input(true, host(run.x), tile, channels(unit, 1, 1, 0), room);
        for (std::int64_t j = 0; j < m; ++j) {
          kernels::fetch_window(output_window(run, tile, channels(unit, 1, m, j), room));
          load_weights(host(run.w), unit, m, j, room.weights);
          sum_up(tile, room, false);
          store_output(run, tile, channels(unit, 1, m, j), room);
        }
      } else {
        kernels::fetch_window(output_window(run, tile, channels(unit, 1, 1, 0), room));
        for (std::int64_t j = 0; j < m; ++j) {
          fill_input(false, host(run.y), tile, channels(unit, 1, m, j), room);
          load_weights(host(run.w), unit, m, j, room.weights);
          sum_up(tile, room, j > 0);
        }
        store_output(run, tile, channels(unit, 1, 1, 0), room);
      }
    }
  });
}

template <typename Real>
void Plan<Real>::sum_up(const Tile& tile, const Room<Real>& room, bool add) const {
  const DepthwiseAxis &down = tiles_.down, &along = tiles_.along;
  const std::int64_t vectors = g_.nhwc ? tile.columns : divide_up(tile.columns, tiles_.lanes);
  for (std::int64_t phase = 0; phase < down.spread * along.spread; ++phase) {
    Real* const to = room.out + phase / along.spread * tiles_.out_row + phase % along.spread * tiles_.out_phase;
    const std::int64_t to_row = down.spread * tiles_.out_row,
                       to_vector = g_.nhwc ? along.spread * tiles_.lanes : tiles_.lanes;
    const std::vector<DepthwiseOffsets>& offsets = tiles_.offsets[static_cast<std::size_t>(phase)];
    if (offsets.empty())
      for (std::int64_t i = 0; i < tile.rows; ++i)
        for (std::int64_t j = 0; j < vectors; ++j) std::fill_n(to + i * to_row + j * to_vector, tiles_.lanes, Real{0});
    bool more = add;
    for (const DepthwiseOffsets& some : offsets) {
      for (std::int64_t i = 0; i < std::min(down.stagger, tile.rows); ++i)
        kernels::add_plane_taps(
            kernels::PlaneSums<Real>{.from = room.in + i * down.unit * tiles_.in_row,
                                     .from_row = down.step * tiles_.in_row,
                                     .from_vector = g_.nhwc ? along.unit * tiles_.lanes : tiles_.lanes,
                                     .offsets = some.offsets,
                                     .taps = some.taps,
                                     .weights = room.weights + some.first_weight * (g_.nhwc ? tiles_.lanes : 1),
                                     .weights_of_lanes = g_.nhwc,
                                     .to = to + i * to_row,
                                     .to_row = down.stagger * to_row,
                                     .to_vector = to_vector,
                                     .rows = divide_up(tile.rows - i, down.stagger),
                                     .vectors = vectors,
                                     .add = more});
      more = true;
    }
  }
}

// Lane i has the filter (first + i) * factor + add.
template <typename Real>
void Plan<Real>::load_weights(const std::byte* w, std::int64_t unit, std::int64_t factor, std::int64_t add,
                              Real* to) const {
  const DataType type = problem().type;
  const std::int64_t taps = g_.r * g_.s, lanes = g_.nhwc ? tiles_.lanes : 1, there = lanes_of(unit);
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const std::int64_t filter = ((g_.nhwc ? unit * lanes : unit) + lane) * factor + add;
    for (std::size_t i = 0; i < tiles_.weights.size(); ++i)
      to[static_cast<std::int64_t>(i) * lanes + lane] =
          lane < there ? static_cast<Real>(load_element(type, w + (filter * taps + tiles_.weights[i]) * size_of(type)))
                       : Real{0};
  }
}

template <typename Real>
kernels::PlaneWindow<Real> Plan<Real>::output_window(const Conv2dRun& run, const Tile& tile, const Channels& of,
                                                     const Room<Real>& room) const {
  const bool of_x = problem().pass == Pass::backward_data;
  const DepthwiseAxis &down = tiles_.down, &along = tiles_.along;
  auto w = window(of_x, host(of_x ? run.x : run.y), tile.n, of);
  w.first_row = tile.row * down.spread - down.before, w.window_rows = tile.rows * down.spread;
  w.first_column = tile.column * along.spread - along.before, w.window_columns = tile.columns * along.spread;
  w.phases = g_.nhwc ? 1 : along.spread;
  w.copy = room.out, w.copy_row = tiles_.out_row, w.copy_phase = tiles_.out_phase, w.line = room.line;
  return w;
}

template <typename Real>
void Plan<Real>::store_output(const Conv2dRun& run, const Tile& tile, const Channels& of,
                              const Room<Real>& room) const {
  const Conv2dProblem& problem = this->problem();
  alignas(64) std::array<Real, most_lanes> bias{};
  if (problem.bias)
    for (std::int64_t i = 0; i < of.count; ++i)
      bias[static_cast<std::size_t>(i)] =
          static_cast<Real>(load_element(problem.type, host(run.bias) + (of.first + i) * size_of(problem.type)));
  kernels::store_window(
      output_window(run, tile, of, room),
      kernels::PlaneFinish<Real>{
          .bias = problem.bias ? bias.data() : nullptr, .accumulate = problem.accumulate, .relu = problem.relu});
}

// Parts of the sums, each over some tiles of all images; several are kept in the workspace and then added in order.
template <typename Real>
void Plan<Real>::to_filter(const Conv2dRun& run) const {
  cpu_.parallel_for(units_.count * parts_,
                    [&](std::int64_t i, int slot) { add_part(run, i / parts_, i % parts_, room(run, slot)); });
  if (parts_ == 1) return;
  const Real* const sums =
      reinterpret_cast<const Real*>(host({run.workspace, 0})) + cpu_.threads() * tiles_.thread_elements();
  const std::int64_t taps = g_.r * g_.s;
  cpu_.parallel_for(g_.k, [&](std::int64_t k, int) {
    for (std::int64_t t = 0; t < taps; ++t) {
      Real sum = 0;
      for (std::int64_t part = 0; part < parts_; ++part) sum += sums[(part * g_.k + k) * taps + t];
      store_filter(run, k, t, sum);
    }
  });
}

template <typename Real>
void Plan<Real>::add_part(const Conv2dRun& run, std::int64_t unit, std::int64_t part, const Room<Real>& room) const {
  const std::int64_t taps = g_.r * g_.s, lanes = tiles_.lanes, m = units_.multiplier;
  Real* const sums = room.weights;
  std::fill_n(sums, taps * lanes, Real{0});
  const std::int64_t across = tiles_.tiles_along(), rows_of_tiles = g_.n * tiles_.tiles_down();
  for (std::int64_t i = part * rows_of_tiles / parts_ * across; i < (part + 1) * rows_of_tiles / parts_ * across; ++i) {
    const std::int64_t of_image = tiles_.tiles_down() * across;
    const Tile tile = this->tile(i / of_image, i % of_image);
    fill_input(true, host(run.x), tile, channels(unit, m, 1, 0), room);
    auto y = window(false, host(run.y), tile.n, channels(unit, 1, 1, 0));
    const std::int64_t vectors = g_.nhwc ? tile.columns : divide_up(tile.columns, lanes);
    y.first_row = tile.row, y.window_rows = tile.rows, y.first_column = tile.column;
    y.window_columns = g_.nhwc ? tile.columns : vectors * lanes, y.phases = 1;
    y.copy = room.out, y.copy_row = tiles_.out_row, y.copy_phase = tiles_.out_phase, y.line = room.line;
    kernels::fill_window(y);
    for (const DepthwiseOffsets& some : tiles_.offsets[0])
      for (std::int64_t j = 0; j < std::min(tiles_.down.stagger, tile.rows); ++j)
        kernels::add_plane_products(
            kernels::PlaneProducts<Real>{.from = room.in + j * tiles_.down.unit * tiles_.in_row,
                                         .from_row = tiles_.down.step * tiles_.in_row,
                                         .from_vector = g_.nhwc ? tiles_.along.unit * lanes : lanes,
                                         .offsets = some.offsets,
                                         .taps = some.taps,
                                         .to = room.out + j * tiles_.out_row,
                                         .to_row = tiles_.down.stagger * tiles_.out_row,
                                         .to_vector = lanes,
                                         .rows = divide_up(tile.rows - j, tiles_.down.stagger),
                                         .vectors = vectors,
                                         .last_lanes = g_.nhwc ? lanes : tile.columns - (vectors - 1) * lanes,
                                         .sums = sums + some.first_weight * lanes});
  }
  Real* const partials = reinterpret_cast<Real*>(host({run.workspace, 0})) + cpu_.threads() * tiles_.thread_elements() +
                         part * g_.k * taps;
  const auto put = [&](std::int64_t k, std::int64_t place, Real sum) {
    if (parts_ == 1)
      store_filter(run, k, place, sum);
    else
      partials[k * taps + place] = sum;
  };
  for (std::int64_t i = 0; i < taps; ++i) {
    const Real* const of_tap = sums + i * lanes;
    const std::int64_t place = tiles_.weights[static_cast<std::size_t>(i)];
    if (g_.nhwc) {
      for (std::int64_t lane = 0; lane < lanes_of(unit); ++lane) put(unit * lanes + lane, place, of_tap[lane]);
      continue;
    }
    Real sum = 0;
    for (std::int64_t lane = 0; lane < lanes; ++lane) sum += of_tap[lane];
    put(unit, place, sum);
  }
}

template <typename Real>
void Plan<Real>::store_filter(const Conv2dRun& run, std::int64_t k, std::int64_t place, Real sum) const {
  const DataType type = problem().type;
  std::byte* const to = host(run.w) + (k * g_.r * g_.s + place) * size_of(type);
  if (problem().accumulate) sum += static_cast<Real>(load_element(type, to));
  store_element(type, sum, to);
}

class DepthwiseCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/depthwise/cpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    const auto* const cpu = dynamic_cast<const devices::CpuDevice*>(device.get());
    if (cpu == nullptr) return "this variant runs on the CPU";
    if (problem.c != problem.groups) return "serves groups of one channel of x alone";
    if (problem.groups == 1 && problem.k > 1) return "leaves several filters of one channel to matrix products";
    for (const auto [taps, stride, dilation] : {std::array{problem.r, problem.stride_h, problem.dilation_h},
                                                std::array{problem.s, problem.stride_w, problem.dilation_w}})
      if (taps > most_taps || stride > most_stride || (taps > 1 && dilation > most_reach / (taps - 1)))
        return fmt::format("serves filters of at most {} taps that reach {} elements, and strides of at most {}",
                           most_taps, most_reach, most_stride);
    std::map<std::size_t, PreparedFormat> formats;
    if (request.prepared == std::vector<std::string>{"w"} && problem.pass != Pass::backward_filter)
      formats[1] = {fmt::format("w of {} {} k{}r{}s{} as it lies", name(problem.type), word_of(problem.layout),
                                problem.k, problem.r, problem.s),
                    elements_of(problem).w * size_of(problem.type)};
    // Tiles decide the order in which the filter's gradient is added up: a limit shared by threads must not change
    // them.
    const std::int64_t limit = problem.pass == Pass::backward_filter ? -1 : request.max_workspace_bytes;
    const DepthwiseTiles tiles(problem, limit, cpu->threads());
    const std::int64_t parts = parts_of(problem, tiles), size = problem.type == DataType::f64 ? 8 : 4;
    const std::int64_t partials =
        parts == 1 ? 0 : checked_multiply(parts, problem.k * problem.r * problem.s, "the parts of the sums");
    return Offer{
        .cost = {cost(problem, *device)},
        .bound = bound(problem, tiles, parts),
        .workspace_bytes = checked_multiply(checked_add(cpu->threads() * tiles.thread_elements(), partials, "the sums"),
                                            size, "the workspace"),
        .prepared = formats,
        .plan = [=]() -> std::shared_ptr<const PlanBody> {
          if (problem.type == DataType::f64) return std::make_shared<Plan<double>>(problem, device, tiles, parts);
          return std::make_shared<Plan<float>>(problem, device, tiles, parts);
        },
    };
  }

 private:
  // Of the filter: a lane's sum in two halves, tile after tile, then the lanes, then the parts.
  static ErrorBound bound(const Conv2dProblem& problem, const DepthwiseTiles& tiles, std::int64_t parts) {
    if (problem.pass != Pass::backward_filter) return conv2d_bound(problem, longest_sum(problem), 3);
    const auto vectors = static_cast<double>(divide_up(problem.n * tiles.tiles_down(), parts)) *
                         static_cast<double>(tiles.rows * tiles.vectors * tiles.tiles_along());
    return conv2d_bound(problem, 2 * vectors + static_cast<double>(tiles.lanes + parts), 3);
  }
  static double cost(const Conv2dProblem& problem, const devices::Device& device);
};

double DepthwiseCpu::cost(const Conv2dProblem& problem, const devices::Device& device) {
  constexpr double begin = 2e5;
  return begin + 2 * multiply_adds(problem) + least_bytes(problem) * byte_cost(device);
}

}  // namespace

const Conv2dSolver& conv2d_depthwise_cpu() {
  static const DepthwiseCpu solver;
  return solver;
}

}  // namespace omniconv::operations
