// The gradient of filters on the CPU, as products of panels of x, shifted from tap to tap, with panels of dy.
#include <algorithm>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/conv2d/shifted_panels/blocking.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_panels.h"
#include "vector/matrix/shifted_panels.h"
#include "vector/matrix/turn.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;

// Rows that are packed in one turn.
constexpr std::int64_t packed_rows = 8;

template <typename Real>
struct Memory {
  const std::byte *x, *y;
  std::byte* w;
  Real *x_panels, *y_panels, *lines, *sums;
};

// What an item multiplies: a panel of filters with some panels of channels.
struct Unit {
  std::int64_t group, y_panel, first, last;
};

template <typename Real>
class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const ShiftedBlocking& cut)
      : Conv2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<CpuDevice&>(*device)),
        cut_(cut),
        g_(cut.shape),
        size_(size_of(problem.type)) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Conv2dRun& run) const;
  Memory<Real> memory_of(const Conv2dRun& run) const;
  void pack(const Memory<Real>& memory, const PixelBlock& band) const;
  void pack_x(const Memory<Real>& memory, const PixelBlock& band, std::int64_t image, std::int64_t panel,
              std::int64_t first, std::int64_t last, int slot) const;
  void pack_row(const std::byte* row, std::int64_t count, std::int64_t pixels, Real* lines, Real* to) const;
  void pack_y(const Memory<Real>& memory, const PixelBlock& band, std::int64_t image, std::int64_t panel,
              std::int64_t first, std::int64_t last) const;
  void multiply(const Memory<Real>& memory, const PixelBlock& band, std::int64_t item, int slot) const;
  void multiply_chunk(const Memory<Real>& memory, const PixelBlock& band, const PixelBlock& chunk, const Unit& unit,
                      std::int64_t panel, Real* sums, bool add) const;
  void finish(const Memory<Real>& memory, const Unit& unit, const Real* sums) const;
  void store(const Memory<Real>& memory, const Unit& unit, const Real* sums, std::int64_t lines, std::int64_t c,
             std::int64_t tap) const;

  Unit unit_of(std::int64_t i) const {
    const std::int64_t ranges = cut_.item_ranges(), first = i % ranges * cut_.item_panels;
    return {i / ranges / cut_.y_cut.panels, i / ranges % cut_.y_cut.panels, first,
            std::min(first + cut_.item_panels, cut_.x_cut.panels)};
  }
  std::int64_t y_width(std::int64_t panel) const { return round_up(cut_.y_cut.count(panel), cut_.lanes); }
  // Elements of an image of a band, and of its rows, in a panel so wide.
  std::int64_t x_row(std::int64_t width) const { return cut_.x_columns() * width; }
  std::int64_t x_image(const PixelBlock& band, std::int64_t width) const {
    return cut_.x_rows(band.rows) * x_row(width);
  }
  std::int64_t y_image(const PixelBlock& band, std::int64_t width) const { return band.rows * g_.q * width; }
  // Where the sums of a panel of x begin in its unit's.
  std::int64_t sums_before(const Unit& unit, std::int64_t panel) const {
    return (panel - unit.first) * cut_.x_width * g_.r * g_.s * cut_.y_width;
  }
  // Of the filter, whose tap reads x at row r and column s of what it reaches.
  std::int64_t tap_of(std::int64_t r, std::int64_t s) const {
    return g_.flip ? (g_.r - 1 - r) * g_.s + g_.s - 1 - s : r * g_.s + s;
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  ShiftedBlocking cut_;
  Conv2dShape g_;
  std::int64_t size_;  // of a stored element
};

template <typename Real>
Memory<Real> Plan<Real>::memory_of(const Conv2dRun& run) const {
  Real* const workspace = reinterpret_cast<Real*>(host({run.workspace, 0}));
  Real *const y_panels = workspace + cut_.x_elements(), *const lines = y_panels + cut_.y_elements();
  return {.x = host(run.x),
          .y = host(run.y),
          .w = host(run.w),
          .x_panels = workspace,
          .y_panels = y_panels,
          .lines = lines,
          .sums = lines + cut_.threads * cut_.line_elements()};
}

template <typename Real>
void Plan<Real>::execute(const Conv2dRun& run) const {
  const Memory<Real> memory = memory_of(run);
  for (std::int64_t i = 0; i < cut_.bands(); ++i) {
    const PixelBlock band = cut_.band(i);
    pack(memory, band);
    cpu_.parallel_for(cut_.units() * cut_.parts,
                      [&](std::int64_t item, int slot) { multiply(memory, band, item, slot); });
  }
  if (!cut_.keeps_sums()) return;
  const std::int64_t elements = cut_.item_sums();
  cpu_.parallel_for(cut_.units(), [&](std::int64_t i, int) {
    Real* const sums = memory.sums + i * elements;
    for (std::int64_t part = 1; part < cut_.parts; ++part) {
      const Real* const more = sums + part * cut_.units() * elements;
      for (std::int64_t at = 0; at < elements; ++at) sums[at] += more[at];
    }
    finish(memory, unit_of(i), sums);
  });
}

// Panels of all channels of x and dy, some rows of an image at a time.
template <typename Real>
void Plan<Real>::pack(const Memory<Real>& memory, const PixelBlock& band) const {
  const std::int64_t x_panels = g_.groups * cut_.x_cut.panels, y_panels = g_.groups * cut_.y_cut.panels,
                     x_rows = cut_.x_rows(band.rows), x_parts = divide_up(x_rows, packed_rows),
                     y_parts = divide_up(band.rows, packed_rows), of_x = x_panels * x_parts, of_y = y_panels * y_parts;
  // Channels of a pixel lie side by side, or rows of a channel.
  const auto split = [&](std::int64_t i, std::int64_t panels, std::int64_t parts) {
    return g_.nhwc ? std::pair{i % panels, i / panels} : std::pair{i / parts, i % parts};
  };
  cpu_.parallel_for(band.images * (of_x + of_y), [&](std::int64_t i, int slot) {
    const std::int64_t image = i / (of_x + of_y), task = i % (of_x + of_y);
    if (task < of_x) {
      const auto [panel, part] = split(task, x_panels, x_parts);
      pack_x(memory, band, image, panel, part * packed_rows, std::min((part + 1) * packed_rows, x_rows), slot);
    } else {
      const auto [panel, part] = split(task - of_x, y_panels, y_parts);
      pack_y(memory, band, image, panel, part * packed_rows, std::min((part + 1) * packed_rows, band.rows));
    }
  });
}

// Rows [first, last) of what the band reads of an image.
template <typename Real>
void Plan<Real>::pack_x(const Memory<Real>& memory, const PixelBlock& band, std::int64_t image, std::int64_t panel,
                        std::int64_t first, std::int64_t last, int slot) const {
  const std::int64_t group = panel / cut_.x_cut.panels, of_group = panel % cut_.x_cut.panels,
                     channel = group * g_.c_group + cut_.x_cut.start(of_group), count = cut_.x_cut.count(of_group),
                     columns = cut_.x_columns(), taken = cut_.along.taken;
  Real* const to = memory.x_panels + panel * cut_.x_panel() + image * x_image(band, count);
  const auto row_of = [&](std::int64_t i) { return band.row * g_.stride_h + i * cut_.down.taken - g_.pad_top; };
  const auto from = [&](std::int64_t h, std::int64_t w) {
    return memory.x + g_.x_at(band.image + image, channel, h, w) * size_;
  };
  // Columns [begin, end) are within x.
  const std::int64_t begin = std::min(g_.pad_left / taken + (g_.pad_left % taken == 0 ? 0 : 1), columns),
                     end = std::max(std::min((g_.w - 1 + g_.pad_left) / taken + 1, columns), begin);
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t h = row_of(i);
    Real* const row = to + i * x_row(count);
    if (h < 0 || h >= g_.h || begin == end) {
      std::fill_n(row, x_row(count), Real{0});
      continue;
    }
    std::fill_n(row, begin * count, Real{0});
    if (columns == g_.w && begin == 0 && taken == 1 && cut_.down.taken == 1) {  // rows follow each other
      const std::int64_t rows = std::min(last - i, g_.h - h);
      pack_row(from(h, 0), count, rows * columns, nullptr, row);
      i += rows - 1;
      continue;
    }
    pack_row(from(h, begin * taken - g_.pad_left), count, end - begin, memory.lines + slot * cut_.line_elements(),
             row + begin * count);
    std::fill_n(row + end * count, (columns - end) * count, Real{0});
  }
}

// Some pixels of `count` channels, of which every so many is taken.
template <typename Real>
void Plan<Real>::pack_row(const std::byte* row, std::int64_t count, std::int64_t pixels, Real* lines, Real* to) const {
  const DataType type = problem().type;
  const std::int64_t taken = std::min(cut_.along.taken, g_.w), plane = g_.h * g_.w;  // of one pixel it does not matter
  if (g_.nhwc) return kernels::pack_panel({row, type, taken * g_.c, false}, count, count, pixels, to);
  if (cut_.along.taken == 1) return kernels::pack_panel({row, type, plane, true}, count, count, pixels, to);
  for (std::int64_t line = 0; line < count; ++line)
    kernels::pack_panel({row + line * plane * size_, type, taken, false}, 1, 1, pixels, lines + line * pixels);
  kernels::pack_panel({reinterpret_cast<const std::byte*>(lines), cut_.real, pixels, true}, count, count, pixels, to);
}

template <typename Real>
void Plan<Real>::pack_y(const Memory<Real>& memory, const PixelBlock& band, std::int64_t image, std::int64_t panel,
                        std::int64_t first, std::int64_t last) const {
  const std::int64_t group = panel / cut_.y_cut.panels, of_group = panel % cut_.y_cut.panels,
                     channel = group * g_.k_group + cut_.y_cut.start(of_group), width = y_width(of_group);
  const std::byte* const from = memory.y + g_.y_at(band.image + image, channel, band.row + first, 0) * size_;
  kernels::pack_panel({from, problem().type, g_.nhwc ? g_.k : g_.p * g_.q, !g_.nhwc}, cut_.y_cut.count(of_group), width,
                      (last - first) * g_.q,
                      memory.y_panels + panel * cut_.y_panel() + image * y_image(band, width) + first * g_.q * width);
}

template <typename Real>
void Plan<Real>::multiply(const Memory<Real>& memory, const PixelBlock& band, std::int64_t item, int slot) const {
  const std::int64_t part = item / cut_.units(), before = cut_.chunks_before(band), count = cut_.chunks(band);
  const Unit unit = unit_of(item % cut_.units());
  Real* const sums = memory.sums + (cut_.keeps_sums() ? item : slot) * cut_.item_sums();
  const std::int64_t skipped = (part - before % cut_.parts + cut_.parts) % cut_.parts;
  for (std::int64_t i = skipped; i < count; i += cut_.parts) {
    const PixelBlock chunk = cut_.chunk(band, i);
    for (std::int64_t panel = unit.first; panel < unit.last; ++panel)
      multiply_chunk(memory, band, chunk, unit, panel, sums + sums_before(unit, panel), before + i >= cut_.parts);
  }
  if (!cut_.keeps_sums()) finish(memory, unit, sums);
}

// Lines of sums: all taps of a channel of the panel, one channel after the other, as in w; under nhwc all channels of a
// tap; and so too where a tile joins taps, by what they reach.
template <typename Real>
void Plan<Real>::multiply_chunk(const Memory<Real>& memory, const PixelBlock& band, const PixelBlock& chunk,
                                const Unit& unit, std::int64_t panel, Real* sums, bool add) const {
  const std::int64_t x_panel = unit.group * cut_.x_cut.panels + panel, count = cut_.x_cut.count(panel),
                     y_panel = unit.group * cut_.y_cut.panels + unit.y_panel, width = y_width(unit.y_panel),
                     taps = g_.r * g_.s;
  kernels::ShiftedPanels<Real> p{
      .a = memory.x_panels + x_panel * cut_.x_panel() + chunk.image * x_image(band, count) +
           chunk.row * cut_.down.step * x_row(count) + chunk.column * cut_.along.step * count,
      .b = memory.y_panels + y_panel * cut_.y_panel() + chunk.image * y_image(band, width) +
           (chunk.row * g_.q + chunk.column) * width,
      .images = chunk.images,
      .lines = chunk.rows,
      .pixels = chunk.columns,
      .a_image = x_image(band, count),
      .a_line = cut_.down.step * x_row(count),
      .a_pixel = cut_.along.step * count,
      .b_image = y_image(band, width),
      .b_line = g_.q * width,
      .rows = count,
      .columns = width,
      .sums = sums,
      .ld = (g_.nhwc || cut_.joins_taps ? 1 : taps) * width,
      .add = add,
  };
  if (p.pixels == g_.q && p.a_line == p.pixels * p.a_pixel) p.pixels *= p.lines, p.lines = 1;
  const Real* const first = p.a;
  for (std::int64_t r = 0; r < g_.r; ++r) {
    const Real* const row = first + r * cut_.down.dilation * x_row(count);
    if (cut_.joins_taps) {
      for (std::int64_t tile = 0; tile < cut_.line_cut.panels; ++tile) {
        const std::int64_t line = cut_.line_cut.start(tile);
        p.a = row + line, p.rows = cut_.line_cut.count(tile);
        p.sums = sums + (r * g_.s * count + line) * width;
        multiply_shifted(p);
      }
      continue;
    }
    for (std::int64_t s = 0; s < g_.s; ++s) {
      p.a = row + s * cut_.along.dilation * count;
      p.sums = sums + tap_of(r, s) * (g_.nhwc ? count : 1) * width;
      multiply_shifted(p);
    }
  }
}

template <typename Real>
void Plan<Real>::finish(const Memory<Real>& memory, const Unit& unit, const Real* sums) const {
  const std::int64_t taps = g_.r * g_.s, width = y_width(unit.y_panel);
  for (std::int64_t panel = unit.first; panel < unit.last; ++panel) {
    const std::int64_t c = cut_.x_cut.start(panel), count = cut_.x_cut.count(panel);
    const Real* const of_panel = sums + sums_before(unit, panel);
    if (!g_.nhwc && !cut_.joins_taps) {
      store(memory, unit, of_panel, count * taps, c, 0);
      continue;
    }
    for (std::int64_t reached = 0; reached < taps; ++reached) {
      const std::int64_t tap = cut_.joins_taps ? tap_of(reached / g_.s, reached % g_.s) : reached;
      const Real* const of_tap = of_panel + reached * count * width;
      if (g_.nhwc) {
        store(memory, unit, of_tap, count, c, tap);
        continue;
      }
      for (std::int64_t i = 0; i < count; ++i) store(memory, unit, of_tap + i * width, 1, c + i, tap);
    }
  }
}

// Lines that follow each other in w, from channel c's tap on, of all filters of the unit's panel.
template <typename Real>
void Plan<Real>::store(const Memory<Real>& memory, const Unit& unit, const Real* sums, std::int64_t lines,
                       std::int64_t c, std::int64_t tap) const {
  const DataType type = problem().type;
  const std::int64_t k = unit.group * g_.k_group + cut_.y_cut.start(unit.y_panel), width = y_width(unit.y_panel),
                     columns = cut_.y_cut.count(unit.y_panel), pitch = g_.c_group * g_.r * g_.s;
  std::byte* const to = memory.w + g_.w_at(k, c, tap / g_.s, tap % g_.s) * size_;
  if (size_ == static_cast<std::int64_t>(sizeof(Real)))
    return kernels::turn({.from = sums,
                          .ld = width,
                          .lines = lines,
                          .columns = columns,
                          .to = reinterpret_cast<Real*>(to),
                          .pitch = pitch,
                          .add = problem().accumulate});
  for (std::int64_t i = 0; i < lines; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      std::byte* const at = to + (j * pitch + i) * size_;
      const Real before = problem().accumulate ? static_cast<Real>(load_element(type, at)) : Real{0};
      store_element(type, before + sums[i * width + j], at);
    }
}

class ShiftedPanelsCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/shifted_panels/cpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    const auto* const cpu = dynamic_cast<const CpuDevice*>(device.get());
    if (cpu == nullptr) return "this variant runs on the CPU";
    if (problem.pass != Pass::backward_filter) return "serves bwd_filter";
    try {
      const ShiftedBlocking cut(problem, cpu->threads(), request.max_workspace_bytes);
      return Offer{
          .cost = {cost(problem, cut, *device)},
          .bound = conv2d_bound(problem, cut.chain(), 2),
          .workspace_bytes = cut.workspace_bytes(),
          .plan = [=]() -> std::shared_ptr<const PlanBody> {
            if (cut.real == DataType::f64) return std::make_shared<Plan<double>>(problem, device, cut);
            return std::make_shared<Plan<float>>(problem, device, cut);
          },
      };
    } catch (const Error& error) {  // panels hold the padding, too, of which others write nothing
      return error.what();
    }
  }

 private:
  static double cost(const Conv2dProblem& problem, const ShiftedBlocking& cut, const devices::Device& device);
};

// Of a run. README.md says where the numbers come from.
double ShiftedPanelsCpu::cost(const Conv2dProblem& problem, const ShiftedBlocking& cut, const devices::Device& device) {
  constexpr double phase = 1e5, of_packed = 10, of_stored = 16;
  constexpr std::int64_t least_rows = 4;  // fewer take as long
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const Conv2dShape& g = cut.shape;
  const std::int64_t tiles = cut.joins_taps ? cut.line_cut.panels : cut.x_cut.panels * g.s,
                     lines = cut.joins_taps ? cut.line_cut.lines : g.c_group * g.s;
  const double pixels = real(g.n) * real(g.p * g.q), rows = std::max(real(lines), real(tiles * least_rows)) * real(g.r),
               columns = real(round_up(g.k_group, cut.lanes));
  const double products = real(g.groups) * pixels * rows * columns;
  const double packed = real(cut.bands()) * (real(cut.x_elements()) + real(cut.y_elements()));
  return phase * real(2 * cut.bands() + 1) + (products + of_packed * packed) * (cut.real == DataType::f64 ? 2 : 1) +
         of_stored * real(cut.parts) * real(elements_of(problem).w) + byte_cost(device) * least_bytes(problem);
}

}  // namespace

const Conv2dSolver& conv2d_shifted_panels_cpu() {
  static const ShiftedPanelsCpu solver;
  return solver;
}

}  // namespace omniconv::operations
