// The gradient of filters on the CPU by Winograd's filtering.
#include "operations/conv2d/winograd/filter.h"

#include <algorithm>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/winograd/filter_blocking.h"
#include "operations/conv2d/winograd/filter_transforms.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_panels.h"
#include "vector/matrix/turn.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;
using kernels::PanelCut;

// Items of transforms for each thread, so that all end at nearly the same time.
constexpr std::int64_t items_per_thread = 8;
constexpr std::int64_t most_panel_bytes = 128, most_taps = 9;  // of a step of a panel of channels; of a filter

// Where a run's arrays lie.
template <typename Real>
struct Memory {
  const Real *x, *y;
  Real *w, *x_panels, *y_panels, *lines, *sums;
};

// What is transformed: x, or dy.
template <typename Real>
struct Side {
  const Real* from;
  std::int64_t channels, h, w;         // of an image
  std::int64_t top, left, reach;       // padding; rows and columns that a tile reads beyond its own
  std::int64_t group_channels, lanes;  // panels are this many elements wide, or a multiple
  const PanelCut& cut;
  Real* panels;
  std::int64_t pitch;  // from a point's panel to the next point's
  void (*transform)(const TileStrip<Real>& strip);
};

// Sums that an item adds up: of panels of filters and of channels.
struct Unit {
  std::int64_t group, y_first, y_last, x_first, x_last;
};

template <typename Real>
class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const WinogradFilterBlocking& cut,
       const WinogradFilterTransforms<Real>& transforms)
      : Conv2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<CpuDevice&>(*device)),
        cut_(cut),
        g_(cut.shape),
        products_(cut.form.products()),
        x_panel_(cut.x_panel()),
        y_panel_(cut.y_panel()),
        transforms_(transforms) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Conv2dRun& run) const;
  Memory<Real> memory_of(const Conv2dRun& run) const;
  Side<Real> side_of_x(const Memory<Real>& memory) const;
  Side<Real> side_of_y(const Memory<Real>& memory) const;
  void transform(const Memory<Real>& memory, const StripRange& band) const;
  void transform_strips(const Side<Real>& side, const StripRange& band, std::int64_t panel, const StripRange& strips,
                        Real* lines) const;
  void pack_line(const Side<Real>& side, std::int64_t image, std::int64_t channel, std::int64_t count, std::int64_t row,
                 std::int64_t column, std::int64_t pixels, std::int64_t width, Real* to) const;
  void multiply(const Memory<Real>& memory, const StripRange& band, std::int64_t item, int slot) const;
  void multiply_chunk(const Memory<Real>& memory, const StripRange& band, const StripRange& chunk, const Unit& unit,
                      std::int64_t point, Real* sums) const;
  void finish(const Memory<Real>& memory, const Unit& unit, std::int64_t y_panel, const Real* sums) const;

  Unit unit_of(std::int64_t i) const {
    const std::int64_t x = i % cut_.x_units() * cut_.unit_columns,
                       y = i / cut_.x_units() % cut_.y_units() * cut_.unit_rows;
    return {i / cut_.x_units() / cut_.y_units(), y, std::min(y + cut_.unit_rows, cut_.y_cut.panels), x,
            std::min(x + cut_.unit_columns, cut_.x_cut.panels)};
  }
  std::int64_t x_width(std::int64_t panel) const { return round_up(cut_.x_cut.count(panel), cut_.tile.lanes); }
  // The sums of a filter of the unit with a panel of channels: a line of x_width for each point.
  std::int64_t sums_at(const Unit& unit, std::int64_t filter, std::int64_t x_panel) const {
    return ((x_panel - unit.x_first) * cut_.unit_rows * cut_.y_width + filter - cut_.y_cut.start(unit.y_first)) *
           products_ * cut_.x_width;
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  WinogradFilterBlocking cut_;
  Conv2dShape g_;
  std::int64_t products_, x_panel_, y_panel_;
  WinogradFilterTransforms<Real> transforms_;
};

template <typename Real>
Memory<Real> Plan<Real>::memory_of(const Conv2dRun& run) const {
  const auto real = [](const Operand& operand) { return reinterpret_cast<Real*>(host(operand)); };
  Real* const workspace = real({run.workspace, 0});
  Real *const y_panels = workspace + cut_.x_elements(), *const lines = y_panels + cut_.y_elements();
  return {.x = real(run.x),
          .y = real(run.y),
          .w = real(run.w),
          .x_panels = workspace,
          .y_panels = y_panels,
          .lines = lines,
          .sums = lines + cut_.threads * cut_.line_elements()};
}

template <typename Real>
Side<Real> Plan<Real>::side_of_x(const Memory<Real>& memory) const {
  return {.from = memory.x,
          .channels = g_.c,
          .h = g_.h,
          .w = g_.w,
          .top = g_.pad_top,
          .left = g_.pad_left,
          .reach = cut_.form.outputs - 1,
          .group_channels = g_.c_group,
          .lanes = cut_.tile.lanes,
          .cut = cut_.x_cut,
          .panels = memory.x_panels,
          .pitch = x_panel_,
          .transform = transforms_.input};
}
template <typename Real>
Side<Real> Plan<Real>::side_of_y(const Memory<Real>& memory) const {
  return {.from = memory.y,
          .channels = g_.k,
          .h = g_.p,
          .w = g_.q,
          .top = 0,
          .left = 0,
          .reach = 0,
          .group_channels = g_.k_group,
          .lanes = 1,
          .cut = cut_.y_cut,
          .panels = memory.y_panels,
          .pitch = y_panel_,
          .transform = transforms_.gradient};
}

template <typename Real>
void Plan<Real>::execute(const Conv2dRun& run) const {
  const Memory<Real> memory = memory_of(run);
  for (std::int64_t i = 0; i < cut_.bands(); ++i) {
    const StripRange band = cut_.band(i);
    transform(memory, band);
    cpu_.parallel_for(cut_.units() * cut_.point_parts,
                      [&](std::int64_t item, int slot) { multiply(memory, band, item, slot); });
  }
  if (!cut_.keeps_sums()) return;
  cpu_.parallel_for(cut_.units() * cut_.unit_rows, [&](std::int64_t i, int) {
    const std::int64_t of_unit = i / cut_.unit_rows;
    const Unit unit = unit_of(of_unit);
    if (const std::int64_t panel = unit.y_first + i % cut_.unit_rows; panel < unit.y_last)
      finish(memory, unit, panel, memory.sums + of_unit * cut_.unit_sums());
  });
}

// All panels of x and dy, each in some parts of the band.
template <typename Real>
void Plan<Real>::transform(const Memory<Real>& memory, const StripRange& band) const {
  const Side<Real> x = side_of_x(memory), y = side_of_y(memory);
  const std::int64_t x_panels = g_.groups * cut_.x_cut.panels, y_panels = g_.groups * cut_.y_cut.panels,
                     enough = items_per_thread * cpu_.threads(),
                     parts = std::clamp<std::int64_t>(divide_up(enough, x_panels + y_panels), 1, band.count);
  cpu_.parallel_for((x_panels + y_panels) * parts, [&](std::int64_t i, int slot) {
    // Channels of a pixel lie side by side, or rows of a channel.
    const std::int64_t panel = g_.nhwc ? i % (x_panels + y_panels) : i / parts,
                       part = g_.nhwc ? i / (x_panels + y_panels) : i % parts, first = part * band.count / parts,
                       last = (part + 1) * band.count / parts;
    const StripRange strips{band.first + first, last - first};
    Real* const lines = memory.lines + slot * cut_.line_elements();
    if (panel < x_panels)
      transform_strips(x, band, panel, strips, lines);
    else
      transform_strips(y, band, panel - x_panels, strips, lines);
  });
}

// Rows of pixels are packed, channels side by side, into a ring of as many as a tile reads: those that it shares with
// the tile below stay.
template <typename Real>
void Plan<Real>::transform_strips(const Side<Real>& side, const StripRange& band, std::int64_t panel,
                                  const StripRange& strips, Real* lines) const {
  const std::int64_t group = panel / side.cut.panels, of_group = panel % side.cut.panels,
                     count = side.cut.count(of_group), width = round_up(count, side.lanes),
                     channel = group * side.group_channels + side.cut.start(of_group), step = cut_.form.taps,
                     rows = step + side.reach, row_strips = cut_.row_strips(),
                     line = cut_.line_elements() / cut_.form.points();
  for (std::int64_t strip = strips.first; strip < strips.first + strips.count; ++strip) {
    const std::int64_t tile_row = strip / row_strips % cut_.tile_rows, image = strip / row_strips / cut_.tile_rows,
                       column = strip % row_strips * cut_.strip_tiles * step - side.left, tiles = cut_.tiles_of(strip);
    const bool follows = strip > strips.first && row_strips == 1 && tile_row > 0;
    TileStrip<Real> to{
        .rows = {},
        .width = width,
        .tiles = tiles,
        .to = side.panels + panel * products_ * side.pitch + (strip - band.first) * cut_.strip_tiles * width,
        .pitch = side.pitch};
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = tile_row * step + i;
      Real* const kept = lines + row % rows * line;
      if (!follows || i >= side.reach)
        pack_line(side, image, channel, count, row - side.top, column, tiles * step + side.reach, width, kept);
      to.rows[static_cast<std::size_t>(i)] = kept;
    }
    side.transform(to);
  }
}

// Some pixels of a row, which may lie outside of the image, as zeros.
template <typename Real>
void Plan<Real>::pack_line(const Side<Real>& side, std::int64_t image, std::int64_t channel, std::int64_t count,
                           std::int64_t row, std::int64_t column, std::int64_t pixels, std::int64_t width,
                           Real* to) const {
  const std::int64_t first = std::clamp<std::int64_t>(-column, 0, pixels),
                     last = std::clamp<std::int64_t>(side.w - column, first, pixels);
  if (row < 0 || row >= side.h || first == last) {
    std::fill_n(to, pixels * width, Real{0});
    return;
  }
  const Real* const from =
      side.from + (g_.nhwc ? ((image * side.h + row) * side.w + column + first) * side.channels + channel
                           : ((image * side.channels + channel) * side.h + row) * side.w + column + first);
  std::fill_n(to, first * width, Real{0});
  kernels::pack_panel(
      {reinterpret_cast<const std::byte*>(from), cut_.real, g_.nhwc ? side.channels : side.h * side.w, !g_.nhwc}, count,
      width, last - first, to + first * width);
  std::fill_n(to + last * width, (pixels - last) * width, Real{0});
}

template <typename Real>
void Plan<Real>::multiply(const Memory<Real>& memory, const StripRange& band, std::int64_t item, int slot) const {
  const std::int64_t part = item % cut_.point_parts, of_unit = item / cut_.point_parts;
  const Unit unit = unit_of(of_unit);
  Real* const sums = memory.sums + (cut_.keeps_sums() ? of_unit : slot) * cut_.unit_sums();
  for (std::int64_t first = 0; first < band.count; first += cut_.chunk_strips) {
    const StripRange chunk{band.first + first, std::min(cut_.chunk_strips, band.count - first)};
    for (std::int64_t point = part * products_ / cut_.point_parts; point < (part + 1) * products_ / cut_.point_parts;
         ++point)
      multiply_chunk(memory, band, chunk, unit, point, sums);
  }
  if (cut_.keeps_sums()) return;
  for (std::int64_t panel = unit.y_first; panel < unit.y_last; ++panel) finish(memory, unit, panel, sums);
}

template <typename Real>
void Plan<Real>::multiply_chunk(const Memory<Real>& memory, const StripRange& band, const StripRange& chunk,
                                const Unit& unit, std::int64_t point, Real* sums) const {
  const std::int64_t first = (chunk.first - band.first) * cut_.strip_tiles, steps = cut_.steps_of(chunk);
  for (std::int64_t q = unit.x_first; q < unit.x_last; ++q) {
    const std::int64_t width = x_width(q);
    const Real* const columns =
        memory.x_panels + ((unit.group * cut_.x_cut.panels + q) * products_ + point) * x_panel_ + first * width;
    for (std::int64_t p = unit.y_first; p < unit.y_last; ++p) {
      const std::int64_t rows = cut_.y_cut.count(p);
      kernels::multiply_panels(kernels::GemmPanels<Real>{
          .a = memory.y_panels + ((unit.group * cut_.y_cut.panels + p) * products_ + point) * y_panel_ + first * rows,
          .b = columns,
          .steps = steps,
          .rows = rows,
          .columns = width,
          .sums = sums + sums_at(unit, cut_.y_cut.start(p), q) + point * cut_.x_width,
          .ld = products_ * cut_.x_width,
          .add = chunk.first > 0});
    }
  }
}

// The filters of a panel: all their channels of the unit. Under nchw taps are side by side in w, and are turned.
template <typename Real>
void Plan<Real>::finish(const Memory<Real>& memory, const Unit& unit, std::int64_t y_panel, const Real* sums) const {
  const std::int64_t lanes = transforms_.lanes, taps = g_.r * g_.s;
  const bool accumulate = problem().accumulate;
  alignas(64) Real here[most_panel_bytes / sizeof(Real) * most_taps];
  for (std::int64_t k = cut_.y_cut.start(y_panel); k < cut_.y_cut.start(y_panel + 1); ++k)
    for (std::int64_t q = unit.x_first; q < unit.x_last; ++q) {
      const std::int64_t count = cut_.x_cut.count(q);
      Real* const w = memory.w + g_.w_at(unit.group * g_.k_group + k, cut_.x_cut.start(q), 0, 0);
      for (std::int64_t lane = 0; lane < count; lane += lanes)
        transforms_.filter(sums + sums_at(unit, k, q) + lane, cut_.x_width, std::min(lanes, count - lane),
                           {.to = (g_.nhwc ? w : here) + lane,
                            .tap_pitch = g_.nhwc ? g_.c_group : cut_.x_width,
                            .turned = g_.flip,
                            .accumulate = accumulate && g_.nhwc});
      if (!g_.nhwc)
        kernels::turn({.from = here,
                       .ld = cut_.x_width,
                       .lines = taps,
                       .columns = count,
                       .to = w,
                       .pitch = taps,
                       .add = accumulate});
    }
}

// Of a run. The constants were fitted: README.md.
double cost_of(const Conv2dProblem& problem, const WinogradFilterBlocking& cut, double of_byte) {
  constexpr double phase = 1e5, of_product = 1.33, of_input = 6, of_gradient = 3, of_addition = 8.5, of_sum = 6,
                   of_strip = 9300, margin = 1.1;            // it is to be the faster by so much
  constexpr std::int64_t least_rows = 4, least_vectors = 8;  // of a tile of products: fewer take as long
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const Conv2dShape& g = cut.shape;
  const std::int64_t lanes = cut.tile.lanes, columns = round_up(g.c_group, lanes), panels = cut.y_cut.panels;
  const double tiles = real(g.n * cut.tile_rows) * real(cut.tile_columns),
               rows = real(columns > lanes ? std::max(g.k_group, least_rows)
                                           : std::max(g.k_group, panels * least_vectors)),
               sums = real(g.k_group) * real(columns);
  const double arithmetic = real(g.groups) * real(cut.form.products()) *
                            (tiles * (of_product * rows * real(columns) + of_input * real(columns) +
                                      of_gradient * real(panels * cut.tile.rows)) +
                             (of_addition * real(cut.chunks()) + of_sum) * sums);
  const double strips = real(g.groups) * real(cut.strips()) * real(cut.x_cut.panels + panels);
  return margin * (phase * real(2 * cut.bands() + 1) + arithmetic * (cut.real == DataType::f64 ? 2 : 1) +
                   of_strip * strips + of_byte * least_bytes(problem));
}

const char* refusal_of(const Conv2dProblem& problem) {
  if (problem.r != 3) return "serves bwd_filter of 3 x 3 filters";
  constexpr std::int64_t most_channels = std::int64_t{1} << 24;  // so that sizes of panels need no checks
  if (std::max(problem.c, problem.k) > most_channels) return "serves bwd_filter of up to 2^24 channels";
  return "";
}

}  // namespace

Answer winograd_filter_offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) {
  if (const char* const refusal = refusal_of(problem); *refusal != '\0') return refusal;
  if (!request.prepared.empty()) return "has no prepared forms of bwd_filter";
  const int threads = dynamic_cast<const CpuDevice&>(*device).threads();
  const Tuning tuning = Tuning::parse(request.tuning);
  const auto offer_of = [&](WinogradForm form, std::int64_t workspace_limit) -> Answer {
    const WinogradFilterBlocking cut(problem, form, tuning, threads, workspace_limit);
    return Offer{.cost = {cost_of(problem, cut, byte_cost(*device))},
                 .bound = winograd_bound(problem, form, cut.chain()),
                 .workspace_bytes = cut.workspace_bytes(),
                 .tuning = cut.tuning(),
                 .plan = [=]() -> std::shared_ptr<const PlanBody> {
                   if (cut.real == DataType::f64)
                     return std::make_shared<Plan<double>>(problem, device, cut, winograd_filter_transforms_f64(form));
                   return std::make_shared<Plan<float>>(problem, device, cut, winograd_filter_transforms_f32(form));
                 }};
  };
  if (const auto tile = tuning.find("tile")) return offer_of({3, static_cast<int>(*tile)}, request.max_workspace_bytes);
  return offer_of_cheaper({3, 4}, {3, 2}, request, offer_of);
}

}  // namespace omniconv::operations
