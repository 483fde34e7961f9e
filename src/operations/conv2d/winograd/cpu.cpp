// Winograd's filtering on the CPU.
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/winograd/blocking.h"
#include "operations/conv2d/winograd/filter.h"
#include "operations/conv2d/winograd/transforms.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_panels.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;
using kernels::PanelCut;

constexpr std::int64_t most_products = 36, most_taps = 25, most_vector_bytes = 64, most_rows = 14, most_lanes = 16;
// Source channels that an item takes, so that it is worth beginning.
constexpr std::int64_t item_channels = 16;
// Channels and vectors of tiles that an item transforms under nchw: enough of a plane that its rows follow each other.
constexpr std::int64_t plane_channels = 8, plane_vectors = 8;
// Vectors of channels under nhwc.
constexpr std::int64_t pixel_vectors = 4;
// Items of products for each thread, so that all end at nearly the same time.
constexpr std::int64_t items_per_thread = 16;

// Where a group's arrays lie.
template <typename Real>
struct Memory {
  const Real *source, *filters, *bias;
  Real *target, *tiles, *transformed, *products;
};

// Tiles [first, first + count).
struct TileBlock {
  std::int64_t first, count;
  PanelCut cut;
};

// Panels [first, first + panels) of filters, of which the first is line `start`.
struct FilterBlock {
  std::int64_t first, panels, start, lines;
};

// Taps that are to be fetched: `lines` sequences of `count` numbers `pitch` apart, one number of each cache line that
// is needed.
template <typename Real>
struct TapsAhead {
  const Real* from = nullptr;
  std::int64_t lines = 0, line_pitch = 0, count = 0, pitch = 0;

  // From where on call i, of so many steps, fetches a number a step; null: all is fetched. What no call reaches is not.
  const Real* of_call(std::int64_t i, std::int64_t steps) const {
    if (lines == 0) return nullptr;
    const std::int64_t first = i / lines * steps;
    return first < count ? from + i % lines * line_pitch + first * pitch : nullptr;
  }
};

template <typename Real>
class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const WinogradBlocking& cut,
       const WinogradTransforms<Real>& transforms)
      : Conv2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<CpuDevice&>(*device)),
        g_(problem),
        cut_(cut),
        shape_(cut.shape),
        filters_(cut.filters.cut(cut.shape.target)),
        transforms_(transforms) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, from, to] {
      for (std::int64_t group = 0; group < g_.groups; ++group)
        transform_filters(of_group(host(from), group), panels_from(0, filters_.panels),
                          reinterpret_cast<Real*>(host(to)) + group * cut_.prepared_elements());
    }));
  }

 private:
  void execute(const Conv2dRun& run) const;
  void run_items(const Memory<Real>& memory, const TileBlock& tiles) const;
  void run_ranges(const Memory<Real>& memory, const TileBlock& tiles) const;
  void multiply_range(const Memory<Real>& memory, const TileBlock& tiles, std::int64_t first, std::int64_t last) const;
  TapsAhead<Real> taps_ahead(const Real* w, std::int64_t panel, std::int64_t step) const;
  void multiply_panel(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                      std::int64_t panel, std::int64_t step) const;
  void add_products(const Real* a, std::int64_t rows, const Real* b, std::int64_t columns, std::int64_t step,
                    Real* sums, const Real* ahead = nullptr, std::int64_t ahead_step = 0, std::int64_t lines = 0) const;
  Memory<Real> memory_of(const Conv2dRun& run, std::int64_t group) const;
  void transform_filters(const Real* w, const FilterBlock& block, Real* to) const;
  void transform_channels(const Real* w, std::int64_t panel, std::int64_t source, std::int64_t channels, Real* to,
                          std::int64_t pitch) const;
  void gather_taps(const Real* w, std::int64_t target, std::int64_t count, std::int64_t source, std::int64_t channels,
                   Real* taps) const;
  void transform(const Memory<Real>& memory, const TileBlock& block) const;
  SourcePlanes<Real> source_planes(const Memory<Real>& memory, std::int64_t channel) const;
  TargetPlanes<Real> target_planes(const Memory<Real>& memory, std::int64_t channel) const;
  void transform_rows(const Memory<Real>& memory, const TileBlock& block) const;
  void transform_planes(const Memory<Real>& memory, const TileBlock& block) const;
  void transform_pixels(const Memory<Real>& memory, const TileBlock& block) const;
  void multiply(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                const Real* transformed) const;
  void combine(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters) const;
  void combine_planes(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                      std::int64_t panel, std::int64_t channel, std::int64_t last) const;
  void combine_rows(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                    std::int64_t channel, std::int64_t last) const;
  void combine_pixels(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                      std::int64_t tile) const;

  bool forward() const { return problem().pass == Pass::forward; }
  FilterBlock panels_from(std::int64_t first, std::int64_t most) const {
    const std::int64_t panels = std::min(most, filters_.panels - first), start = filters_.start(first);
    return {first, panels, start, filters_.start(first + panels) - start};
  }
  const Real* of_group(const std::byte* w, std::int64_t group) const {
    return reinterpret_cast<const Real*>(w) + group * g_.k_group * g_.c_group * g_.r * g_.s;
  }
  OutputFinish<Real> finish_for(const Memory<Real>& memory, std::int64_t channel) const {
    return {memory.bias != nullptr ? memory.bias + channel : nullptr, problem().accumulate, problem().relu};
  }
  // Panels of tiles that are combined apart: of rows, which are turned, all are one.
  std::int64_t combined_panels(const TileBlock& tiles) const { return cut_.tiles.is_columns ? tiles.cut.panels : 1; }
  // Where the products with a line of rows begin, of a panel of columns.
  Real* products_at(const Memory<Real>& memory, std::int64_t rows, std::int64_t row, std::int64_t panel) const {
    return memory.products + (panel * rows + row) * cut_.form.products() * cut_.tile.columns;
  }
  struct Place {
    std::int64_t image, row, column;  // of a tile's first output
  };
  Place place_of(std::int64_t tile) const {
    const std::int64_t of_image = shape_.tile_rows * shape_.tile_columns;
    return {tile / of_image, tile % of_image / shape_.tile_columns * cut_.form.outputs,
            tile % shape_.tile_columns * cut_.form.outputs};
  }
  // Of tiles [first, first + count), which are lanes of a vector; returns how many.
  std::int64_t runs_of(std::int64_t first, std::int64_t count, TileRun* runs) const;

  DevicePointer device_;
  CpuDevice& cpu_;
  Conv2dShape g_;
  WinogradBlocking cut_;
  WinogradShape shape_;
  PanelCut filters_;
  WinogradTransforms<Real> transforms_;
};

template <typename Real>
Memory<Real> Plan<Real>::memory_of(const Conv2dRun& run, std::int64_t group) const {
  const auto real = [](const Operand& operand) { return reinterpret_cast<Real*>(host(operand)); };
  const std::int64_t x_group = g_.x_at(0, group * g_.c_group, 0, 0), y_group = g_.y_at(0, group * g_.k_group, 0, 0);
  Real *const x = real(run.x) + x_group, *const y = real(run.y) + y_group;
  Real* const workspace = real({run.workspace, 0});
  return {.source = forward() ? x : y,
          .filters = cut_.prepared ? real(run.w) + group * cut_.prepared_elements() : of_group(host(run.w), group),
          .bias = problem().bias ? real(run.bias) + group * g_.k_group : nullptr,
          .target = forward() ? y : x,
          .tiles = workspace,
          .transformed = workspace + cut_.tile_slots() * cut_.tile_elements(),
          .products = workspace + cut_.tile_slots() * cut_.tile_elements() + cut_.slots() * cut_.filter_elements()};
}

template <typename Real>
void Plan<Real>::execute(const Conv2dRun& run) const {
  const std::int64_t panel_elements = cut_.form.products() * cut_.filters.pitch;
  for (std::int64_t group = 0; group < g_.groups; ++group) {
    const Memory<Real> memory = memory_of(run, group);
    if (cut_.keeps_filters) transform_filters(memory.filters, panels_from(0, filters_.panels), memory.transformed);
    for (std::int64_t first = 0; first < shape_.tiles; first += cut_.block_tiles) {
      const std::int64_t count = std::min(cut_.block_tiles, shape_.tiles - first);
      const TileBlock tiles{first, count, cut_.tiles.cut(count)};
      if (cut_.ranges > 0) {
        run_ranges(memory, tiles);
        continue;
      }
      transform(memory, tiles);
      if (cut_.item_filters > 0) {
        run_items(memory, tiles);
        continue;
      }
      for (std::int64_t panel = 0; panel < filters_.panels; panel += cut_.block_filters) {
        const FilterBlock filters = panels_from(panel, cut_.block_filters);
        const Real* transformed = (cut_.prepared ? memory.filters : memory.transformed) + panel * panel_elements;
        if (!cut_.prepared && !cut_.keeps_filters) {
          transform_filters(memory.filters, filters, memory.transformed);
          transformed = memory.transformed;
        }
        multiply(memory, tiles, filters, transformed);
        combine(memory, tiles, filters);
      }
    }
  }
}

// Where threads would hand each other more than they compute: an item of work transforms some panels of filters, a run
// of steps at a time, multiplies them with all tiles while its thread's cache holds them, and combines the products.
template <typename Real>
void Plan<Real>::run_items(const Memory<Real>& memory, const TileBlock& tiles) const {
  cpu_.parallel_for(divide_up(filters_.panels, cut_.item_filters), [&](std::int64_t i, int slot) {
    const FilterBlock filters = panels_from(i * cut_.item_filters, cut_.item_filters);
    Memory<Real> own = memory;
    own.transformed += slot * cut_.filter_elements();
    own.products += slot * cut_.product_elements();
    for (std::int64_t step = 0; step < shape_.source; step += cut_.steps)
      for (std::int64_t panel = filters.first; panel < filters.first + filters.panels; ++panel) {
        const std::int64_t width = cut_.filters.width(filters_.count(panel)),
                           end = std::min(step + cut_.steps, shape_.source);
        for (std::int64_t source = step; source < end; source += item_channels)
          transform_channels(own.filters, panel, source, std::min(item_channels, end - source),
                             own.transformed + (source - step) * width, cut_.item_pitch());
        multiply_panel(own, tiles, filters, panel, step);
      }
    if (g_.nhwc)
      for (std::int64_t tile = 0; tile < tiles.count; ++tile) combine_pixels(own, tiles, filters, tile);
    else
      for (std::int64_t panel = 0; panel < combined_panels(tiles); ++panel)
        combine_planes(own, tiles, filters, panel, 0, filters.lines);
  });
}

// What a parallel_for within an item's own body does, its thread does alone.
template <typename Real>
void Plan<Real>::run_ranges(const Memory<Real>& memory, const TileBlock& tiles) const {
  const FilterBlock filters = panels_from(0, filters_.panels);
  cpu_.parallel_for(cut_.ranges, [&](std::int64_t i, int slot) {
    Memory<Real> own = memory;
    own.tiles += slot * cut_.tile_elements();
    transform(own, tiles);
    const std::int64_t first = i * filters.lines / cut_.ranges, last = (i + 1) * filters.lines / cut_.ranges;
    multiply_range(own, tiles, first, last);
    for (std::int64_t panel = 0; panel < tiles.cut.panels; ++panel)
      combine_planes(own, tiles, filters, panel, first, last);
  });
}

// Products of filters [first, last), which begin and end anywhere in their panels.
template <typename Real>
void Plan<Real>::multiply_range(const Memory<Real>& memory, const TileBlock& tiles, std::int64_t first,
                                std::int64_t last) const {
  const std::int64_t products = cut_.form.products();
  for (std::int64_t p = 0; p < filters_.panels; ++p) {
    const std::int64_t start = filters_.start(p), lines = filters_.count(p), row = std::max(first, start),
                       rows = std::min(last, start + lines) - row;
    if (rows <= 0) continue;
    for (std::int64_t e = 0; e < products; ++e)
      for (std::int64_t step = 0; step < shape_.source; step += cut_.steps)
        for (std::int64_t q = 0; q < tiles.cut.panels; ++q) {
          const std::int64_t columns = tiles.cut.count(q);
          add_products(memory.filters + (p * products + e) * cut_.filters.pitch + step * lines + row - start, rows,
                       memory.tiles + (q * products + e) * cut_.tiles.pitch + step * cut_.tiles.width(columns), columns,
                       step, products_at(memory, shape_.target, row, q) + e * cut_.tile.columns, nullptr, 0, lines);
        }
  }
}

// The products of a panel of rows and one of columns, at one point, of a run of steps that begins at `step`. With
// lines: the rows are some of a panel of so many.
template <typename Real>
void Plan<Real>::add_products(const Real* a, std::int64_t rows, const Real* b, std::int64_t columns, std::int64_t step,
                              Real* sums, const Real* ahead, std::int64_t ahead_step, std::int64_t lines) const {
  kernels::multiply_panels(kernels::GemmPanels<Real>{.a = a,
                                                     .b = b,
                                                     .steps = std::min(cut_.steps, shape_.source - step),
                                                     .rows = rows,
                                                     .columns = columns,
                                                     .sums = sums,
                                                     .ld = cut_.form.products() * cut_.tile.columns,
                                                     .add = step > 0,
                                                     .a_step = lines == rows ? 0 : lines,
                                                     .ahead = ahead,
                                                     .ahead_step = ahead_step});
}

// Those of a panel's steps from `step` on, as transform_channels reads them; of no panel, none.
template <typename Real>
TapsAhead<Real> Plan<Real>::taps_ahead(const Real* w, std::int64_t panel, std::int64_t step) const {
  if (panel >= filters_.panels) return {};
  constexpr std::int64_t line = 64 / sizeof(Real);
  const std::int64_t start = filters_.start(panel), lines = filters_.count(panel),
                     steps = std::min(cut_.steps, shape_.source - step), taps = g_.r * g_.s, channels = g_.c_group;
  const Real* const from = w + (forward() ? g_.w_at(start, step, 0, 0) : g_.w_at(step, start, 0, 0));
  if (g_.nhwc && forward()) return {from, divide_up(steps, line), line, lines * taps, channels};
  if (g_.nhwc) return {from, divide_up(lines, line), line, steps * taps, channels};
  const std::int64_t pitch = std::min(taps, line);  // as steps go, unless that would pass lines
  if (forward()) return {from, lines, channels * taps, divide_up(steps * taps, pitch), pitch};
  return {from, divide_up(lines * taps, line), line, steps, channels * taps};
}

// Of an item: a panel's steps from `step` on, with all tiles.
template <typename Real>
void Plan<Real>::multiply_panel(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                                std::int64_t panel, std::int64_t step) const {
  const std::int64_t products = cut_.form.products(), lines = filters_.count(panel);
  // What will be transformed next: of the item's next panel, of its first one's next steps, or of the next item.
  std::int64_t next = panel + 1, next_step = step;
  if (next == filters.first + filters.panels) {
    next_step += cut_.steps;
    if (next_step < shape_.source)
      next = filters.first;
    else
      next_step = 0;
  }
  const TapsAhead ahead = taps_ahead(memory.filters, next, next_step);
  for (std::int64_t e = 0; e < products; ++e)
    for (std::int64_t t = 0; t < tiles.cut.panels; ++t) {
      const std::int64_t count = tiles.cut.count(t);
      const Real* const fetched = ahead.of_call(e * tiles.cut.panels + t, cut_.steps);
      const Real *const of_tiles =
                            memory.tiles + (t * products + e) * cut_.tiles.pitch + step * cut_.tiles.width(count),
                        *const of_filters = memory.transformed + e * cut_.item_pitch();
      if (cut_.tiles.is_columns)
        add_products(
            of_filters, lines, of_tiles, count, step,
            products_at(memory, filters.lines, filters_.start(panel) - filters.start, t) + e * cut_.tile.columns,
            fetched, ahead.pitch);
      else
        add_products(
            of_tiles, count, of_filters, lines, step,
            products_at(memory, tiles.count, tiles.cut.start(t), panel - filters.first) + e * cut_.tile.columns,
            fetched, ahead.pitch);
    }
}

// Panels of the block, to `to` and on.
template <typename Real>
void Plan<Real>::transform_filters(const Real* w, const FilterBlock& block, Real* to) const {
  const std::int64_t parts = divide_up(shape_.source, item_channels), pitch = cut_.filters.pitch;
  cpu_.parallel_for(block.panels * parts, [&](std::int64_t i, int) {
    const std::int64_t panel = block.first + i / parts, source = i % parts * item_channels;
    transform_channels(
        w, panel, source, std::min(item_channels, shape_.source - source),
        to + i / parts * cut_.form.products() * pitch + source * cut_.filters.width(filters_.count(panel)), pitch);
  });
}

// At most item_channels of a panel, of which the first is to lie at `to`.
template <typename Real>
void Plan<Real>::transform_channels(const Real* w, std::int64_t panel, std::int64_t source, std::int64_t channels,
                                    Real* to, std::int64_t pitch) const {
  const std::int64_t first = filters_.start(panel), lines = filters_.count(panel), width = cut_.filters.width(lines),
                     lanes = transforms_.lanes;
  alignas(64) Real taps[item_channels * most_taps * most_vector_bytes / sizeof(Real)];
  for (std::int64_t lane = 0; lane < width; lane += lanes) {
    gather_taps(w, first + lane, std::min(lanes, lines - lane), source, channels, taps);
    const bool adjacent = forward() && g_.nhwc;  // channels of one tap, or else taps of one channel
    const std::int64_t of_channel = adjacent ? lanes : g_.r * g_.s * lanes,
                       of_tap = adjacent ? item_channels * lanes : lanes;
    for (std::int64_t c = 0; c < channels; ++c)
      transforms_.filter({taps + c * of_channel, of_tap, shape_.turned}, std::min(lanes, width - lane),
                         to + c * width + lane, pitch);
  }
}

// Taps of `count` target channels, a vector of them for each tap and source channel.
template <typename Real>
void Plan<Real>::gather_taps(const Real* w, std::int64_t target, std::int64_t count, std::int64_t source,
                             std::int64_t channels, Real* taps) const {
  const std::int64_t of_filter = g_.r * g_.s, lanes = transforms_.lanes;
  const auto pack = [&](std::int64_t from, std::int64_t ld, bool steps_adjacent, std::int64_t steps, Real* to) {
    kernels::pack_panel({reinterpret_cast<const std::byte*>(w + from), cut_.real, ld, steps_adjacent}, count, lanes,
                        steps, to);
  };
  if (forward() && !g_.nhwc)
    return pack(g_.w_at(target, source, 0, 0), g_.c_group * of_filter, true, channels * of_filter, taps);
  if (forward()) {
    for (std::int64_t tap = 0; tap < of_filter; ++tap)
      pack(g_.w_at(target, source, 0, tap), g_.c_group * of_filter, true, channels, taps + tap * item_channels * lanes);
    return;
  }
  for (std::int64_t c = 0; c < channels; ++c)
    pack(g_.w_at(source + c, target, 0, 0), g_.nhwc ? g_.c_group : of_filter, !g_.nhwc, of_filter,
         taps + c * of_filter * lanes);
}

template <typename Real>
std::int64_t Plan<Real>::runs_of(std::int64_t first, std::int64_t count, TileRun* runs) const {
  std::int64_t found = 0;
  for (std::int64_t lane = 0; lane < count;) {
    const Place place = place_of(first + lane);
    const std::int64_t length = std::min(count - lane, shape_.tile_columns - place.column / cut_.form.outputs);
    runs[found++] = {lane, length, place.image, place.row, place.column};
    lane += length;
  }
  return found;
}

template <typename Real>
void Plan<Real>::transform(const Memory<Real>& memory, const TileBlock& block) const {
  if (g_.nhwc) return transform_pixels(memory, block);
  cut_.tiles.is_columns ? transform_planes(memory, block) : transform_rows(memory, block);
}

template <typename Real>
SourcePlanes<Real> Plan<Real>::source_planes(const Memory<Real>& memory, std::int64_t channel) const {
  const std::int64_t plane = shape_.source_h * shape_.source_w;
  return {memory.source + channel * plane,
          shape_.source * g_.groups * plane,
          shape_.source_h,
          shape_.source_w,
          shape_.top,
          shape_.left,
          plane};
}

template <typename Real>
TargetPlanes<Real> Plan<Real>::target_planes(const Memory<Real>& memory, std::int64_t channel) const {
  const std::int64_t plane = shape_.target_h * shape_.target_w;
  return {memory.target + channel * plane, shape_.target * g_.groups * plane, shape_.target_h, shape_.target_w};
}

// Of some channels all tiles, which one vector holds, and which are rows of the products.
template <typename Real>
void Plan<Real>::transform_rows(const Memory<Real>& memory, const TileBlock& block) const {
  const std::int64_t lanes = transforms_.lanes, products = cut_.form.products();
  cpu_.parallel_for(divide_up(shape_.source, plane_channels), [&](std::int64_t part, int) {
    const std::int64_t channel = part * plane_channels, channels = std::min(plane_channels, shape_.source - channel);
    std::array<TileRun, most_lanes> runs;
    const std::int64_t count = runs_of(block.first, block.count, runs.data());
    alignas(64) Real here[most_products * plane_channels * most_vector_bytes / sizeof(Real)];
    for (std::int64_t c = 0; c < channels; ++c)
      transforms_.input_of_planes(source_planes(memory, channel + c), runs.data(), count, here + c * lanes,
                                  plane_channels * lanes);
    for (std::int64_t p = 0; p < block.cut.panels; ++p) {
      const std::int64_t lines = block.cut.count(p);
      for (std::int64_t e = 0; e < products; ++e)
        kernels::pack_panel({reinterpret_cast<const std::byte*>(here + e * plane_channels * lanes + block.cut.start(p)),
                             cut_.real, lanes, false},
                            lines, lines, channels,
                            memory.tiles + (p * products + e) * cut_.tiles.pitch + channel * lines);
    }
  });
}

// Of some channels all tiles of some panels, one channel after the other: what is read lies together.
template <typename Real>
void Plan<Real>::transform_planes(const Memory<Real>& memory, const TileBlock& block) const {
  const std::int64_t lanes = transforms_.lanes, parts = divide_up(shape_.source, plane_channels),
                     vectors = divide_up(block.count, lanes), groups = divide_up(vectors, plane_vectors),
                     products = cut_.form.products();
  cpu_.parallel_for(groups * parts, [&](std::int64_t i, int) {
    const std::int64_t first = i / parts * plane_vectors, last = std::min(first + plane_vectors, vectors),
                       channel = i % parts * plane_channels, end = std::min(channel + plane_channels, shape_.source);
    std::array<std::array<TileRun, most_lanes>, plane_vectors> runs;
    std::array<std::int64_t, plane_vectors> counts;
    for (std::int64_t v = first; v < last; ++v)
      counts[v - first] =
          runs_of(block.first + v * lanes, std::min(lanes, block.count - v * lanes), runs[v - first].data());
    for (std::int64_t c = channel; c < end; ++c)
      for (std::int64_t v = first; v < last; ++v) {
        const std::int64_t panel = v * lanes / cut_.tiles.most, lane = v * lanes % cut_.tiles.most,
                           width = cut_.tiles.width(block.cut.count(panel));
        transforms_.input_of_planes(source_planes(memory, c), runs[v - first].data(), counts[v - first],
                                    memory.tiles + panel * products * cut_.tiles.pitch + c * width + lane,
                                    cut_.tiles.pitch);
      }
  });
}

template <typename Real>
void Plan<Real>::transform_pixels(const Memory<Real>& memory, const TileBlock& block) const {
  const std::int64_t lanes = transforms_.lanes, parts = divide_up(shape_.source, pixel_vectors * lanes),
                     channels = shape_.source * g_.groups;
  cpu_.parallel_for(block.cut.panels * parts, [&](std::int64_t i, int) {
    const std::int64_t panel = i / parts, first = block.first + block.cut.start(panel), lines = block.cut.count(panel),
                       begin = i % parts * pixel_vectors * lanes,
                       end = std::min(begin + pixel_vectors * lanes, shape_.source);
    Real* const to = memory.tiles + panel * cut_.form.products() * cut_.tiles.pitch;
    alignas(64) Real here[most_products * most_rows * most_vector_bytes / sizeof(Real)];
    for (std::int64_t channel = begin; channel < end; channel += lanes) {
      const std::int64_t count = std::min(lanes, end - channel);
      for (std::int64_t line = 0; line < lines; ++line) {
        const Place place = place_of(first + line);
        const Real* const image = memory.source + place.image * shape_.source_h * shape_.source_w * channels + channel;
        transforms_.input_of_tile(
            {image, place.row - shape_.top, place.column - shape_.left, shape_.source_h, shape_.source_w, channels},
            count, here + line * lanes, most_rows * lanes);
      }
      for (std::int64_t e = 0; e < cut_.form.products(); ++e)
        kernels::pack_panel({reinterpret_cast<const std::byte*>(here + e * most_rows * lanes), cut_.real, lanes, true},
                            lines, lines, count, to + e * cut_.tiles.pitch + channel * lines);
    }
  });
}

template <typename Real>
void Plan<Real>::multiply(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                          const Real* transformed) const {
  struct Side {
    const Real* data;
    std::int64_t pitch, first, panels, start;
    const PanelCut& cut;
  };
  const Side of_tiles{memory.tiles, cut_.tiles.pitch, 0, tiles.cut.panels, 0, tiles.cut},
      of_filters{transformed, cut_.filters.pitch, filters.first, filters.panels, filters.start, filters_};
  const bool has_columns = cut_.tiles.is_columns;
  const Side &rows = has_columns ? of_filters : of_tiles, &columns = has_columns ? of_tiles : of_filters;
  const std::int64_t products = cut_.form.products(), all_rows = has_columns ? filters.lines : tiles.count;
  // A thread has neighbouring items: where its cache holds all tiles, those of some rows, whose sums it may combine,
  // too.
  constexpr std::int64_t cached_bytes = std::int64_t{512} << 10;
  const bool by_rows = has_columns && cut_.tile_elements() * static_cast<std::int64_t>(sizeof(Real)) <= cached_bytes;
  const std::int64_t parts =
      by_rows ? rows.panels
              : std::clamp<std::int64_t>(divide_up(items_per_thread * cpu_.threads(), products), 1, rows.panels);
  cpu_.parallel_for(products * parts, [&](std::int64_t i, int) {
    const std::int64_t e = by_rows ? i % products : i / parts, part = by_rows ? i / products : i % parts;
    for (std::int64_t step = 0; step < shape_.source; step += cut_.steps)
      for (std::int64_t p = part * rows.panels / parts; p < (part + 1) * rows.panels / parts; ++p) {
        const std::int64_t row = rows.cut.start(rows.first + p) - rows.start, count = rows.cut.count(rows.first + p);
        for (std::int64_t q = 0; q < columns.panels; ++q) {
          const std::int64_t width = columns.cut.count(columns.first + q);
          add_products(rows.data + (p * products + e) * rows.pitch + step * count, count,
                       columns.data + (q * products + e) * columns.pitch + step * round_up(width, cut_.tile.lanes),
                       width, step, products_at(memory, all_rows, row, q) + e * cut_.tile.columns);
        }
      }
  });
}

template <typename Real>
void Plan<Real>::combine(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters) const {
  if (g_.nhwc) {
    cpu_.parallel_for(tiles.count, [&](std::int64_t tile, int) { combine_pixels(memory, tiles, filters, tile); });
    return;
  }
  // Of whole vectors, where these are of filters.
  constexpr std::int64_t fewest = 4;
  const std::int64_t panels = combined_panels(tiles),
                     channels = cut_.tiles.is_columns
                                    ? std::clamp(divide_up(filters.lines, 2 * cpu_.threads()), fewest, item_channels)
                                    : item_channels;
  cpu_.parallel_for(panels * divide_up(filters.lines, channels), [&](std::int64_t i, int) {
    const std::int64_t channel = i / panels * channels;
    combine_planes(memory, tiles, filters, i % panels, channel, std::min(channel + channels, filters.lines));
  });
}

// Of filters [channel, last) of the block.
template <typename Real>
void Plan<Real>::combine_planes(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                                std::int64_t panel, std::int64_t channel, std::int64_t last) const {
  if (!cut_.tiles.is_columns) return combine_rows(memory, tiles, filters, channel, last);
  const std::int64_t lanes = transforms_.lanes, first = tiles.cut.start(panel), lines = tiles.cut.count(panel);
  std::array<TileRun, most_lanes> runs;
  for (std::int64_t lane = 0; lane < lines; lane += lanes) {
    const std::int64_t count = runs_of(tiles.first + first + lane, std::min(lanes, lines - lane), runs.data());
    for (std::int64_t k = channel; k < last; ++k)
      transforms_.output_of_planes(products_at(memory, filters.lines, k, panel) + lane, cut_.tile.columns, runs.data(),
                                   count, finish_for(memory, filters.start + k),
                                   target_planes(memory, filters.start + k));
  }
}

// The same where tiles are rows, and no more than a vector has lanes: the products of a vector of filters are turned
// first, so that tiles are its lanes. `channel` begins a vector of the block's.
template <typename Real>
void Plan<Real>::combine_rows(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                              std::int64_t channel, std::int64_t last) const {
  const std::int64_t lanes = transforms_.lanes, products = cut_.form.products(), columns = cut_.tile.columns;
  std::array<TileRun, most_lanes> runs;
  const std::int64_t runs_count = runs_of(tiles.first, tiles.count, runs.data());
  alignas(64) Real turned[most_products * most_lanes * most_vector_bytes / sizeof(Real)];
  for (std::int64_t k = channel; k < last; k += lanes) {
    const Real* const from = products_at(memory, tiles.count, 0, k / columns) + k % columns;
    const std::int64_t count = std::min(lanes, last - k);
    for (std::int64_t e = 0; e < products; ++e)
      kernels::pack_panel({reinterpret_cast<const std::byte*>(from + e * columns), cut_.real, products * columns, true},
                          tiles.count, lanes, count, turned + e * lanes * lanes);
    for (std::int64_t i = 0; i < count; ++i)
      transforms_.output_of_planes(turned + i * lanes, lanes * lanes, runs.data(), runs_count,
                                   finish_for(memory, filters.start + k + i),
                                   target_planes(memory, filters.start + k + i));
  }
}

template <typename Real>
void Plan<Real>::combine_pixels(const Memory<Real>& memory, const TileBlock& tiles, const FilterBlock& filters,
                                std::int64_t tile) const {
  const std::int64_t lanes = transforms_.lanes, channels = shape_.target * g_.groups;
  const Place place = place_of(tiles.first + tile);
  Real* const to =
      memory.target + ((place.image * shape_.target_h + place.row) * shape_.target_w + place.column) * channels;
  for (std::int64_t k = 0; k < filters.lines; k += lanes)
    transforms_.output_of_tile(products_at(memory, tiles.count, tile, k / cut_.tile.columns) + k % cut_.tile.columns,
                               cut_.tile.columns, std::min(lanes, filters.lines - k),
                               finish_for(memory, filters.start + k),
                               {to + filters.start + k, shape_.target_h - place.row, shape_.target_w - place.column,
                                shape_.target_w * channels, channels});
}

class WinogradCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/winograd/cpu.1"; }
  std::span<const Tunable> tunables() const override { return winograd_tunables(); }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override;
};

// Of a run. The constants were fitted: README.md.
double cost_of(const Conv2dProblem& problem, const WinogradBlocking& cut, double of_byte) {
  // Fitted with vectors of 16 lanes. What waits for memory and turns vectors takes as long with 8, and fewer
  // multiply-adds meanwhile.
  const double narrow = 16.0 / static_cast<double>(kernels::register_tile(DataType::f32, 64).lanes);
  const double phase = 2e5, of_input = narrow > 1 ? 30 : 40, of_output = of_input,
               gathered_filter = 45 / std::sqrt(narrow), adjacent_filter = narrow > 1 ? 26 : 10;
  constexpr std::int64_t least_rows = 4;  // fewer take as long
  constexpr std::int64_t cached_bytes = std::int64_t{16} << 20;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const WinogradShape& shape = cut.shape;
  const bool planes = problem.layout == Layout::nchw;
  const bool has_columns = cut.tiles.is_columns;
  // Not by the items of this many threads: forms are chosen by the problem.
  const bool takes_items = cut.has_few_tiles() && !cut.prepared;
  // Items transform what a thread's cache holds, and read w while they multiply; not fitted with 8 lanes.
  const bool reads_ahead = takes_items && narrow == 1;
  const double of_filter = planes && problem.pass == Pass::forward ? adjacent_filter
                           : reads_ahead                           ? 18
                                                                   : gathered_filter;
  const double tiles = real(has_columns ? round_up(shape.tiles, cut.tile.lanes) : std::max(shape.tiles, least_rows)),
               target = real(has_columns ? std::max(shape.target, least_rows) : round_up(shape.target, cut.tile.lanes)),
               source = real(shape.source);
  const std::int64_t blocks = divide_up(shape.tiles, cut.block_tiles),
                     filter_blocks = divide_up(cut.filter_panels, cut.block_filters),
                     filter_bytes = cut.prepared_elements() * size_of(cut.real);
  const double filters = cut.prepared ? 0 : real(cut.keeps_filters ? 1 : blocks);
  const double arithmetic =
      real(cut.form.products()) * (tiles * target * source + of_input * tiles * source + of_output * tiles * target +
                                   of_filter * filters * source * target);
  const std::int64_t filter_phases = takes_items ? 1 : filter_blocks * (cut.prepared || cut.keeps_filters ? 2 : 3);
  const double phases = real(blocks * (1 + filter_phases) + 1);
  // Transformed filters that no cache keeps are read again for each block, and written. Those that come transformed are
  // only read, in their order, while others are multiplied, and w is not read.
  constexpr double byte_in_order = 4;
  const bool passes_memory = filter_bytes > cached_bytes && (cut.prepared || cut.keeps_filters);
  const double filter_traffic = passes_memory ? real(filter_bytes) * (real(blocks) + 2 * filters) : 0;
  const double w_bytes = cut.prepared || reads_ahead ? real(elements_of(problem).w * size_of(problem.type)) : 0,
               w_in_order = reads_ahead ? w_bytes : 0;
  return real(problem.groups) * (phase * phases + arithmetic * (cut.real == DataType::f64 ? 2 : 1) +
                                 (cut.prepared ? byte_in_order : of_byte) * filter_traffic) +
         of_byte * (least_bytes(problem) - w_bytes) + byte_in_order * w_in_order;
}

Answer WinogradCpu::offer(const Conv2dProblem& problem, const DevicePointer& device,
                          const SolverOptions& request) const {
  const auto* const cpu = dynamic_cast<const CpuDevice*>(device.get());
  if (cpu == nullptr) return "this variant runs on the CPU";
  if (size_of(problem.type) < 4) return "serves f32, tf32 and f64: transforms of stored halves would round them";
  if (const char* const refusal = winograd_refusal(problem); *refusal != '\0') return refusal;
  if (request.relative_error) return "its errors follow the largest input of a tile, not an element's own terms";
  if (problem.pass == Pass::backward_filter) return winograd_filter_offer(problem, device, request);
  const bool prepared = !request.prepared.empty();
  if (prepared && request.prepared != std::vector<std::string>{"w"}) return "has a prepared form of w alone";
  const Tuning tuning = Tuning::parse(request.tuning);
  const auto tile = tuning.find("tile");
  if (problem.r == 5 && tile == 4) return "filters of 5 x 5 have tiles of 2 x 2 outputs";
  const auto offer_of = [&](WinogradForm form, std::int64_t workspace_limit) -> Answer {
    const WinogradBlocking cut(problem, form, tuning, workspace_limit, prepared, cpu->threads());
    std::map<std::size_t, PreparedFormat> formats;
    if (prepared) formats[1] = cut.format(problem);
    return Offer{.cost = {cost_of(problem, cut, byte_cost(*device))},
                 .bound = winograd_bound(problem, form, cut.chain()),
                 .workspace_bytes = cut.workspace_bytes(),
                 .prepared = formats,
                 .tuning = cut.tuning(),
                 .plan = [=]() -> std::shared_ptr<const PlanBody> {
                   if (cut.real == DataType::f64)
                     return std::make_shared<Plan<double>>(problem, device, cut, winograd_transforms_f64(form));
                   return std::make_shared<Plan<float>>(problem, device, cut, winograd_transforms_f32(form));
                 }};
  };
  const std::int64_t limit = request.max_workspace_bytes;
  if (problem.r == 5) return offer_of({2, 5}, limit);
  if (tile) return offer_of({static_cast<int>(*tile), 3}, limit);
  return offer_of_cheaper({4, 3}, {2, 3}, request, offer_of);
}

}  // namespace

const Conv2dSolver& conv2d_winograd_cpu() {
  static const WinogradCpu solver;
  return solver;
}

}  // namespace omniconv::operations
