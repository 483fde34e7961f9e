// The gradient of filters on the processor's matrix unit: at each tap a product of x, shifted by the tap, and dy.
#include "operations/conv2d/shifted_panels/tiles.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/blocked/blocking.h"
#include "operations/conv2d/conv2d.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_tiles.h"
#include "vector/matrix/turn.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice, kernels::BfloatPair, kernels::matrix_side;

constexpr std::int64_t panel_width = kernels::matrix_tile;
constexpr std::int64_t size = sizeof(std::uint16_t);  // of a stored element

struct Memory {
  const std::uint16_t *x, *y;
  std::byte* w;
  std::uint16_t* x_copy;
  BfloatPair* y_copy;
  float* sums;
};

// Sums of a panel of filters and one of channels.
struct Item {
  std::int64_t group, filters, channels;
};

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const GradientCut& cut)
      : Conv2dPlanBody(problem), device_(device), cpu_(dynamic_cast<CpuDevice&>(*device)), cut_(cut), g_(cut.shape) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }

 private:
  void execute(const Conv2dRun& run) const;
  void copy_x(const Memory& memory, const GradientBand& band, std::int64_t image, std::int64_t c) const;
  void copy_y(const Memory& memory, const GradientBand& band, std::int64_t image, std::int64_t panel) const;
  void copy_planes(const std::uint16_t* from, std::int64_t count, std::int64_t rows, BfloatPair* to) const;
  void copy_pixels(const std::uint16_t* from, std::int64_t count, std::int64_t rows, BfloatPair* to) const;
  void multiply(const Memory& memory, const GradientBand& band, const Item& item, std::int64_t part, float* sums) const;
  void finish(const Memory& memory, const Item& item, const float* sums) const;

  Item item_of(std::int64_t i) const {
    return {i / cut_.channels.panels / cut_.filters.panels, i / cut_.channels.panels % cut_.filters.panels,
            i % cut_.channels.panels};
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  GradientCut cut_;
  Conv2dShape g_;
};

void Plan::execute(const Conv2dRun& run) const {
  std::byte* const workspace = host({run.workspace, 0});
  const Memory memory{.x = reinterpret_cast<const std::uint16_t*>(host(run.x)),
                      .y = reinterpret_cast<const std::uint16_t*>(host(run.y)),
                      .w = host(run.w),
                      .x_copy = reinterpret_cast<std::uint16_t*>(workspace),
                      .y_copy = reinterpret_cast<BfloatPair*>(workspace + cut_.x_bytes()),
                      .sums = reinterpret_cast<float*>(workspace + cut_.x_bytes() + cut_.y_bytes())};
  const std::int64_t items = cut_.items(), of_item = cut_.item_sums(), panels = g_.groups * cut_.filters.panels;
  for (std::int64_t i = 0; i < cut_.bands(); ++i) {
    const GradientBand band = cut_.band(i);
    cpu_.parallel_for(band.images * (g_.c + panels), [&](std::int64_t task, int) {
      const std::int64_t image = task / (g_.c + panels), at = task % (g_.c + panels);
      at < panels ? copy_y(memory, band, image, at) : copy_x(memory, band, image, at - panels);
    });
    cpu_.parallel_for(items * cut_.parts, [&](std::int64_t at, int) {
      multiply(memory, band, item_of(at % items), at / items, memory.sums + at * of_item);
    });
  }
  cpu_.parallel_for(items, [&](std::int64_t at, int) {
    float* const sums = memory.sums + at * of_item;
    for (std::int64_t part = 1; part < cut_.parts; ++part) {
      const float* const more = sums + part * items * of_item;
      for (std::int64_t j = 0; j < of_item; ++j) sums[j] += more[j];
    }
    finish(memory, item_of(at), sums);
  });
}

// A channel of what the band reads of an image, with zeros where nothing is.
void Plan::copy_x(const Memory& memory, const GradientBand& band, std::int64_t image, std::int64_t c) const {
  const BlockedAxis &down = cut_.down, &along = cut_.along;
  const std::int64_t pitch = cut_.pitch, rows = band.rows + down.reach(), unit = along.unit * g_.x_at(0, 0, 0, 1),
                     all = cut_.channel(band.rows);
  std::uint16_t* const channel = memory.x_copy + (image * g_.c + c) * all;
  std::uint16_t* to = channel;
  for (const std::int64_t row_phase : down.phases)
    for (const std::int64_t column_phase : along.phases) {
      const std::int64_t first = along.low * along.unit + column_phase;
      const auto [begin, end] = part_within(first, along.unit, g_.w, pitch);
      for (std::int64_t row = 0; row < rows; ++row, to += pitch) {
        const std::int64_t h = (band.row + down.low + row) * down.unit + row_phase;
        if (h < 0 || h >= g_.h || begin == end) {
          std::fill_n(to, pitch, std::uint16_t{0});
          continue;
        }
        const std::uint16_t* const from = memory.x + g_.x_at(band.image + image, c, h, first + begin * along.unit);
        std::fill_n(to, begin, std::uint16_t{0});
        if (unit == 1)
          std::memcpy(to + begin, from, static_cast<std::size_t>((end - begin) * size));
        else
          for (std::int64_t i = 0; i < end - begin; ++i) to[begin + i] = from[i * unit];
        std::fill_n(to + end, pitch - end, std::uint16_t{0});
      }
    }
  std::fill(to, channel + all, std::uint16_t{0});
}

// A panel's filters of the band's rows of an image, chunk after chunk.
void Plan::copy_y(const Memory& memory, const GradientBand& band, std::int64_t image, std::int64_t panel) const {
  const std::int64_t group = panel / cut_.filters.panels, of_group = panel % cut_.filters.panels,
                     k = group * g_.k_group + cut_.filters.start(of_group), count = cut_.filters.count(of_group);
  BfloatPair* to = memory.y_copy + (image * g_.groups * cut_.filters.panels + panel) * cut_.panel(band.rows);
  for (std::int64_t row = 0; row < band.rows; row += cut_.chunk_rows) {
    const std::int64_t rows = std::min(cut_.chunk_rows, band.rows - row);
    const std::uint16_t* const from = memory.y + g_.y_at(band.image + image, k, band.row + row, 0);
    g_.nhwc ? copy_pixels(from, count, rows, to) : copy_planes(from, count, rows, to);
    to += panel_width * cut_.pairs(rows);
  }
}

// Filters that lie apart: those of 32 pixels at a time are turned.
void Plan::copy_planes(const std::uint16_t* from, std::int64_t count, std::int64_t rows, BfloatPair* to) const {
  constexpr std::int64_t together = 2 * matrix_side;
  alignas(64) std::array<std::uint16_t, panel_width * together> lines;
  const std::int64_t pixels = 2 * cut_.pairs(rows), plane = g_.y_at(0, 1, 0, 0);
  for (std::int64_t first = 0; first < pixels; first += together, to += panel_width * matrix_side) {
    lines.fill(0);
    for (std::int64_t at = first; at < std::min(first + together, rows * cut_.pitch);) {
      const std::int64_t row = at / cut_.pitch, column = at % cut_.pitch,
                         end = std::min(first + together, (row + 1) * cut_.pitch),
                         some = std::min(end - at, g_.q - column);
      for (std::int64_t k = 0; k < count && some > 0; ++k) {
        const std::uint16_t* const pixel = from + k * plane + row * g_.q + column;
        std::uint16_t* const line = lines.data() + k * together + at - first;
        for (std::int64_t i = 0; i < some; ++i) line[i] = pixel[i];
      }
      at = end;
    }
    kernels::turn(kernels::Turned<BfloatPair>{.from = reinterpret_cast<const BfloatPair*>(lines.data()),
                                              .ld = matrix_side,
                                              .lines = panel_width,
                                              .columns = matrix_side,
                                              .to = to,
                                              .pitch = panel_width,
                                              .add = false});
  }
}

// Filters that lie side by side.
void Plan::copy_pixels(const std::uint16_t* from, std::int64_t count, std::int64_t rows, BfloatPair* to) const {
  std::fill_n(to, panel_width * cut_.pairs(rows), BfloatPair{});
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < g_.q; column += kernels::pair_terms) {
      const std::uint16_t *const low = from + (row * g_.q + column) * g_.k, *const high = low + g_.k;
      BfloatPair* const pairs = to + (row * cut_.pitch + column) / kernels::pair_terms * panel_width;
      if (column + 1 < g_.q)
        kernels::pair_lines(low, high, 1, count, pairs);
      else
        for (std::int64_t k = 0; k < count; ++k) pairs[k] = {low[k], 0};
    }
}

void Plan::multiply(const Memory& memory, const GradientBand& band, const Item& item, std::int64_t part,
                    float* sums) const {
  const std::int64_t of_channel = cut_.channel(band.rows), filters = g_.groups * cut_.filters.panels,
                     c = item.group * g_.c_group + cut_.channels.start(item.channels);
  constexpr std::int64_t no_offset = 0;
  for (std::int64_t image = 0; image < band.images; ++image)
    for (std::int64_t row = 0; row < band.rows; row += cut_.chunk_rows) {
      const std::int64_t number = (band.image + image) * cut_.chunks() + (band.row + row) / cut_.chunk_rows,
                         rows = std::min(cut_.chunk_rows, band.rows - row);
      if (number % cut_.parts != part) continue;
      const std::uint16_t* const x = memory.x_copy + (image * g_.c + c) * of_channel + row * cut_.pitch;
      kernels::MatrixTiles tiles{
          .a = nullptr,
          .b = memory.y_copy +
               (image * filters + item.group * cut_.filters.panels + item.filters) * cut_.panel(band.rows) +
               row / cut_.chunk_rows * cut_.pairs(cut_.chunk_rows) * panel_width,
          .taps = &no_offset,
          .tap_count = 1,
          .blocks = cut_.pairs(rows) / matrix_side,
          .depth = matrix_side,
          .a_block = 2 * matrix_side,
          .a_row = of_channel,
          .b_block = matrix_side * panel_width,
          .b_tap = 0,
          .b_step = panel_width,
          .rows = cut_.channels.count(item.channels),
          .columns = cut_.filters.count(item.filters),
          .sums = nullptr,
          .ld = cut_.sum_columns(),
          .add = number >= cut_.parts,
      };
      for (const BlockedTap& r : cut_.down.classes.front().taps)
        for (const BlockedTap& s : cut_.along.classes.front().taps) {
          tiles.a = x + cut_.offset(r, s, band.rows);
          tiles.sums = sums + (r.tap * g_.s + s.tap) * cut_.sum_rows() * cut_.sum_columns();
          kernels::multiply_tiles(tiles);
        }
    }
}

// Of each filter: its channels' taps lie side by side in w, or each tap's channels.
void Plan::finish(const Memory& memory, const Item& item, const float* sums) const {
  constexpr std::int64_t together = 32;  // taps
  alignas(64) std::array<float, panel_width * together> row;
  const std::int64_t taps = g_.r * g_.s, first_c = cut_.channels.start(item.channels),
                     channels = cut_.channels.count(item.channels);
  const kernels::GemmFinish finish{
      .type = DataType::bf16, .output = DataType::bf16, .accumulate = problem().accumulate};
  for (std::int64_t k = 0; k < cut_.filters.count(item.filters); ++k)
    for (std::int64_t tap = 0; tap < taps; tap += together) {
      const std::int64_t some = std::min(together, taps - tap),
                         filter = item.group * g_.k_group + cut_.filters.start(item.filters) + k;
      const std::int64_t of_channel = g_.nhwc ? 1 : some, of_tap = g_.nhwc ? channels : 1;
      for (std::int64_t t = 0; t < some; ++t)
        for (std::int64_t c = 0; c < channels; ++c)
          row[static_cast<std::size_t>(c * of_channel + t * of_tap)] =
              sums[((tap + t) * cut_.sum_rows() + c) * cut_.sum_columns() + k];
      std::byte* const to = memory.w + g_.w_at(filter, first_c, tap / g_.s, tap % g_.s) * size;
      if (g_.nhwc)
        kernels::finish_tile(finish, row.data(), channels, some, channels, to, g_.c_group);
      else if (some == taps)
        kernels::finish_tile(finish, row.data(), channels * taps, 1, channels * taps, to, channels * taps);
      else
        kernels::finish_tile(finish, row.data(), some, channels, some, to, taps);
    }
}

class ShiftedTilesCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/shifted_panels/cpu-tiles.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (dynamic_cast<const CpuDevice*>(device.get()) == nullptr) return "this variant runs on the CPU";
    if (problem.pass != Pass::backward_filter) return "serves bwd_filter";
    if (const char* const refusal = tiles_refusal(problem, request); refusal != nullptr) return refusal;
    if (const char* const refusal = blocked_refusal(problem, true); refusal != nullptr) return refusal;
    try {
      const GradientCut cut(problem, request.max_workspace_bytes);
      return Offer{
          .cost = {cost(problem, cut, *device)},
          .bound = conv2d_bound(problem, cut.chain()),
          .workspace_bytes = cut.workspace_bytes(),
          .plan = [=] { return std::make_shared<Plan>(problem, device, cut); },
      };
    } catch (const Error& error) {  // copies hold the padding, too
      return error.what();
    }
  }

 private:
  static double cost(const Conv2dProblem& problem, const GradientCut& cut, const devices::Device& device);
};

// Of a run. README.md says where the numbers come from.
double ShiftedTilesCpu::cost(const Conv2dProblem& problem, const GradientCut& cut, const devices::Device& device) {
  constexpr double phase = 1e5, of_stored = 16;
  const bool are_apart = problem.layout == Layout::nhwc;
  const double of_x = are_apart ? 16 : 2, of_y = are_apart ? 2 : 8;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double bands = real(cut.bands()), x = bands * real(cut.x_bytes() / size),
               y = bands * real(cut.y_bytes() / size);
  return phase * (2 * bands + 1) + cut.tile_products() + of_x * x + of_y * y +
         of_stored * real(cut.parts) * real(cut.items()) * real(cut.item_sums()) +
         byte_cost(device) * least_bytes(problem);
}

}  // namespace

const Conv2dSolver& conv2d_shifted_tiles_cpu() {
  static const ShiftedTilesCpu solver;
  return solver;
}

}  // namespace omniconv::operations
