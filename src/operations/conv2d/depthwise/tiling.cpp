#include "operations/conv2d/depthwise/tiling.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/checked.h"
#include "operations/conv2d/depthwise/planes.h"
#include "operations/gpu_limits.h"

namespace omniconv::operations {
namespace {

using Sides = DepthwiseSides;

constexpr std::int64_t most_channels = 32;                                 // of a group
constexpr std::int64_t most_taps = 64, most_reach = 128, most_stride = 8;  // along an axis; reach with dilation
constexpr std::int64_t most_extent = std::int64_t{1} << 28, most_numbers = std::int64_t{1} << 31;
constexpr std::int64_t most_unrolled = 1024;  // multiply-adds of a block, in the text of one channel
constexpr std::int64_t most_sums = 64;        // of a work item, in registers: of a block, or of the filter's gradient
constexpr std::int64_t most_held = 50;        // weights in registers
constexpr std::int64_t most_staged_bytes = 32 << 10;
constexpr std::int64_t most_parts = 1024;           // of the filter's gradient
constexpr std::int64_t least_coming = 3;            // rows of the input that a strip has on their way
constexpr std::int64_t most_strip_registers = 112;  // of three groups on a multiprocessor, beside addresses and tests

std::int64_t power_of_two_in(std::int64_t number, std::int64_t most) {
  return std::min(number & -number, most);
}
std::int64_t floored(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}
// Of a group's channels: they divide them, and are a power of two where they are read or written at once.
std::int64_t divisor_of(std::int64_t channels, std::int64_t most, bool nhwc) {
  if (nhwc) return power_of_two_in(channels, most);
  while (channels % most != 0) --most;
  return most;
}

DepthwiseSpan span_of(std::int64_t block, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                      std::int64_t pad, bool data) {
  const std::int64_t reach = (taps - 1) * dilation;
  if (!data) return {-pad, (block - 1) * stride + reach + 1};
  const std::int64_t low = -floored(reach - pad, stride), high = floored(block - 1 + pad, stride);
  return {low, high - low + 1};
}

// Channels of a work item; of the filter's gradient with its rows of taps.
void choose_channels(const Conv2dProblem& problem, DepthwiseTiling& t) {
  const Sides of(problem);
  const Conv2dShape& g = of.g;
  t.paired = g.nhwc && g.c_group == 1 && g.k_group == 1;
  if (problem.pass != Pass::backward_filter) {
    // Of x's gradient a block has a stride's rows and columns at least.
    const bool data = problem.pass == Pass::backward_data;
    const std::int64_t most = std::clamp<std::int64_t>(data ? most_sums / (g.stride_h * g.stride_w) : 4, 1, 4);
    const std::int64_t at_most =
        g.nhwc ? static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most))) : most;
    t.channels =
        t.paired ? power_of_two_in(g.c, at_most) : divisor_of(of.out_group, std::min(of.out_group, at_most), g.nhwc);
    t.inputs = t.paired || !g.nhwc ? 1 : power_of_two_in(of.in_group, 2);
    t.units = of.out_channels / t.channels;
    return;
  }
  const std::int64_t taps = g.r * g.s;
  if (t.paired) {
    t.channels = power_of_two_in(g.c, 4);
    while (t.channels > 1 && taps * t.channels > most_sums) t.channels /= 2;
  } else {
    for (const std::int64_t most : {4, 2}) {
      t.channels = divisor_of(g.k_group, std::min(g.k_group, most), g.nhwc);
      t.inputs = divisor_of(g.c_group, std::min(g.c_group, most), g.nhwc);
      if (taps * t.channels * t.inputs <= most_sums) break;
      t.channels = t.inputs = 1;
    }
  }
  t.tap_rows = std::clamp<std::int64_t>(most_sums / (g.s * t.channels * t.inputs), 1, g.r);
  t.units = g.k / t.channels * (t.paired ? 1 : g.c_group / t.inputs);
}

// Why a work item cannot go down a strip.
std::string strip_refusal(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  if (t.ahead == 0)
    return t.rows <= most_depthwise_block
               ? ""
               : fmt::format("rows={}: must be at most {} where ahead is 0", t.rows, most_depthwise_block);
  const auto refused = [&](const char* rule) { return fmt::format("ahead={}: must be 0 {}", t.ahead, rule); };
  if (!t.paired) return refused("but for nhwc, where groups have a channel each");
  if (t.planes > 0) return refused("where planes is not");
  if (problem.pass == Pass::backward_data && problem.stride_h > 1)
    return refused("to the data where rows have a stride");
  const Conv2dShape g(problem);
  if (problem.pass == Pass::backward_filter ? t.tap_rows < g.r : !t.holds_taps) return refused("where taps are many");
  return {};
}

std::string block_refusal(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  const Conv2dShape g(problem);
  const auto refused = [&](const char* name, std::int64_t value, const std::string& rule) {
    return fmt::format("{}={}: {}", name, value, rule);
  };
  if (problem.pass == Pass::backward_data) {
    if (t.rows % g.stride_h != 0)
      return refused("rows", t.rows, fmt::format("must be a multiple of the stride, {}", g.stride_h));
    if (t.columns % g.stride_w != 0)
      return refused("columns", t.columns, fmt::format("must be a multiple of the stride, {}", g.stride_w));
  }
  const bool filter = problem.pass == Pass::backward_filter;
  if (std::string reason = strip_refusal(problem, t); !reason.empty()) return reason;
  const std::int64_t sums = t.open_rows() * t.columns * t.channels;
  if (sums > most_sums)
    return refused("rows", t.rows, fmt::format("a work item has {} sums, and at most {}", sums, most_sums));
  const std::int64_t unrolled = t.open_rows() * t.columns * t.channels * t.inputs * g.s * (filter ? t.tap_rows : 1);
  if (unrolled > most_unrolled)
    return refused("rows", t.rows, fmt::format("a text has {} multiply-adds, and at most {}", unrolled, most_unrolled));
  if (!g.nhwc && t.lanes != 1) return refused("lanes", t.lanes, "must be 1 in nchw");
  if (filter != (t.waves > 0))
    return refused("waves", t.waves, filter ? "must be 1 or more for the filter's gradient" : "must be 0");
  if (t.async > 0 && t.planes == 0) return refused("async", t.async, "must be 0 where planes is");
  if (t.alone > 0 && !depthwise_may_hold_alone(problem, t))
    return refused("alone", t.alone, "must be 0 but for nhwc and few taps, where groups have a channel each");
  if (!filter && g.nhwc && t.lanes > 1 && depthwise_staged_bytes(problem, t) > most_staged_bytes)
    return refused("lanes", t.lanes,
                   fmt::format("the weights take {} bytes of local memory, and at most {}",
                               depthwise_staged_bytes(problem, t), most_staged_bytes));
  return {};
}

// Lanes side by side read a line of a cache.
std::int64_t lanes_for(const Conv2dProblem& problem, DepthwiseTiling t) {
  if (problem.layout == Layout::nchw) return 1;
  for (t.lanes = 128 / (t.channels * size_of(problem.type)); t.lanes > 1; t.lanes /= 2) {
    if (static_cast<std::uint64_t>(t.lanes) > std::bit_ceil(static_cast<std::uint64_t>(t.units))) continue;
    if (t.lanes <= 32 && block_refusal(problem, t).empty()) return t.lanes;
  }
  return 1;
}

// Numbers that a work item keeps in registers, about.
std::int64_t registers_of(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  const Conv2dShape g(problem);
  const std::int64_t row = t.along.count * (t.paired ? t.channels : t.inputs), pairs = t.channels * t.inputs;
  const std::int64_t weights = problem.pass == Pass::backward_filter ? t.tap_rows * g.s * pairs
                               : t.holds_taps                        ? g.r * g.s * pairs
                                                                     : 0;
  return t.open_rows() * t.columns * t.channels + weights + 2 * row;
}

// Instructions of a block, about, and what its bytes take on their way from the second cache.
double work_of(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  const Sides of(problem);
  const Conv2dShape& g = of.g;
  const bool filter = problem.pass == Pass::backward_filter;
  const double size = static_cast<double>(size_of(problem.type));
  // Lines of a cache that 32 work items touch at once: neighbours lie apart by a block, and not all in one row.
  const double lines =
      g.nhwc ? size / 4 * static_cast<double>(t.channels)
             : std::min(32.0, size / 4 * static_cast<double>(t.columns) + 32.0 / static_cast<double>(t.column_blocks));
  const auto loads = [&](std::int64_t columns, std::int64_t vector) {  // with their addresses and tests
    const std::int64_t vectors = vector > 1 ? divide_up(columns - 1, vector) + 1 : columns;
    return static_cast<double>(vectors) * (2 + lines);
  };
  const double of_row = static_cast<double>(g.nhwc ? 1 : t.inputs) * loads(t.along.count, g.nhwc ? 1 : t.x_vector);
  const double taps = static_cast<double>((filter ? t.tap_rows : g.r) * g.s);
  const double sums = static_cast<double>(t.rows * t.columns * t.channels);
  // Of a row a block reads some elements that its neighbours read too, out of the first cache.
  constexpr double byte = 2;
  const double own = static_cast<double>(of.in_w) / static_cast<double>(t.column_blocks);
  const double of_bytes = byte * size * own * static_cast<double>(t.paired ? t.channels : t.inputs);
  double work = sums * static_cast<double>(t.inputs) * taps + static_cast<double>(t.down.count) * (of_row + of_bytes);
  if (filter)
    work += static_cast<double>(t.rows * (g.nhwc ? 1 : t.channels)) * loads(t.columns, g.nhwc ? 1 : t.y_vector);
  else  // weights, where they are used or once
    work += 2 * taps * static_cast<double>(t.channels * t.inputs * (t.holds_taps ? 1 : t.rows));
  const double inputs = static_cast<double>(filter ? 1 : of.in_group / t.inputs);
  const double crowded = t.open_rows() * t.columns * t.channels > 32 ? 1.12 : 1;  // fewer work items side by side
  return crowded * (40 + inputs * work + sums);
}

double total_work(const Conv2dProblem& problem, const DepthwiseTiling& t, const devices::Device& device) {
  if (t.planes > 0)
    return depthwise_planes_instructions(problem, t, device) *
           static_cast<double>(depthwise_groups(problem, t, problem.n) * t.group);
  const double passes =
      problem.pass == Pass::backward_filter ? static_cast<double>(divide_up(Conv2dShape(problem).r, t.tap_rows)) : 1;
  const double blocks =
      static_cast<double>(problem.n) * static_cast<double>(t.units) * static_cast<double>(t.blocks()) * passes;
  // Fewer than a GPU takes to be busy.
  const double idle = device.info().is_gpu ? std::max(1.0, 512.0 * device.info().compute_units / blocks) : 1;
  return idle * blocks * work_of(problem, t);
}

// As many as fill so many waves of groups to seven eighths, or a few more waves where that many fill them badly; but so
// that the sums of a part are worth their place.
void choose_parts(const Conv2dProblem& problem, const devices::Device& device, std::int64_t limit, DepthwiseTiling& t) {
  const Conv2dShape g(problem);
  const std::int64_t groups = divide_up(t.units, t.lanes) * divide_up(g.r, t.tap_rows), blocks = g.n * t.blocks();
  const std::int64_t of_wave = t.resident * std::max(device.info().compute_units, 1);
  std::int64_t wanted = 1;
  for (std::int64_t waves = t.waves; waves < t.waves + 4; ++waves) {
    wanted = std::max<std::int64_t>(waves * of_wave / groups, 1);
    if (8 * wanted * groups >= 7 * waves * of_wave) break;
  }
  std::int64_t most = std::min(divide_up(blocks, 4 * t.pixels()), most_parts);
  if (most > 1) most = std::min(divide_up(blocks, 2 * t.pixels()), most_parts);  // a second launch comes in any case
  if (limit >= 0) most = std::clamp<std::int64_t>(limit / depthwise_part_bytes(problem), 1, most);
  t.parts = std::min(wanted, most);
  t.blocks_of_part = round_up(divide_up(blocks, t.parts), t.pixels());  // work items take equally many
  t.parts = divide_up(blocks, t.blocks_of_part);
}

// Of the filter's gradient. The sums of a group that has many take as long as a block or two: it is to have many
// blocks.
std::int64_t waves_for(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  if (problem.pass != Pass::backward_filter) return 0;
  return t.tap_rows * Conv2dShape(problem).s * t.channels * t.inputs > 16 ? 1 : 4;
}

// Blocks of the least work, which are read where the arrays lie.
DepthwiseChoice blocks_tiling(const Conv2dProblem& problem, DepthwiseTiling t, const devices::Device& device) {
  DepthwiseChoice best;
  double least = std::numeric_limits<double>::infinity();
  for (t.rows = 1; t.rows <= most_depthwise_block; ++t.rows)
    for (t.columns = 1; t.columns <= most_depthwise_block; ++t.columns) {
      t.lanes = lanes_for(problem, t);
      fill_depthwise(problem, t);
      const bool filter = problem.pass == Pass::backward_filter;
      const std::int64_t registers = registers_of(problem, t);
      t.resident = registers <= 60 ? 5 : registers <= (filter ? 72 : 96) ? 4 : 3;
      // Of nhwc's few sums two groups with more blocks each: on an H200 0.100 ms of 256 channels where three take
      // 0.106, but of 5x5 filters 0.026 and 0.024.
      constexpr std::int64_t few_sums = 40;
      if (filter && t.lanes > 1 && t.tap_rows * problem.s * t.channels * t.inputs <= few_sums)
        t.resident = std::min<std::int64_t>(t.resident, 2);
      std::string reason = block_refusal(problem, t);
      const double work = reason.empty() ? total_work(problem, t, device) : least;
      if (work < least)
        least = work, best = {t};
      else if (!reason.empty() && least == std::numeric_limits<double>::infinity())
        best.refusal = std::move(reason);
    }
  return best;
}

// Numbers and words that a work item keeps as it goes down a strip: sums, or rows of y, that are open, weights or their
// sums, the rows on their way and the one that is used.
std::int64_t strip_registers(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  const Conv2dShape g(problem);
  const bool filter = problem.pass == Pass::backward_filter;
  const std::int64_t row = t.along.count * t.channels, words_each = 4 / size_of(problem.type);
  const std::int64_t step = problem.pass == Pass::backward_data ? 1 : g.stride_h;
  const std::int64_t words = t.turn * (step * row + (filter ? t.columns * t.channels : 0)) / words_each;
  return t.window * t.columns * t.channels + g.r * g.s * t.channels + words + (filter ? step : 1) * row;
}

// Strips for elements of 16 bits, of which blocks have half the bytes on their way that they have of fp32, and between
// blocks none. None where they do not fill half of the device. Rows so that the last strips of all multiprocessors end
// together: a strip costs its rows, those that its neighbours read too, and two turns' time until the first has come.
std::optional<DepthwiseTiling> strips_tiling(const Conv2dProblem& problem, DepthwiseTiling t,
                                             const devices::Device& device, std::int64_t limit) {
  const bool filter = problem.pass == Pass::backward_filter;
  if (!t.paired || size_of(problem.type) != 2 || t.channels < 4) return {};
  std::optional<DepthwiseTiling> best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  t.ahead = 1, t.alone = filter ? 0 : 1;
  for (t.columns = 2; t.columns > 0 && !best; --t.columns)
    for (const std::int64_t rows : {8, 14, 28, 56}) {
      t.rows = rows, t.lanes = 1;
      fill_depthwise(problem, t);
      t.lanes = lanes_for(problem, t);
      if (t.units % 32 == 0) t.lanes = 32;  // lines of 256 bytes
      fill_depthwise(problem, t);
      const std::int64_t registers = strip_registers(problem, t);
      if (registers > most_strip_registers || !block_refusal(problem, t).empty()) continue;
      t.resident = registers <= 60 ? 5 : 3;
      if (filter) choose_parts(problem, device, limit, t);
      const std::int64_t groups =
          filter ? t.parts * divide_up(t.units, t.lanes) : depthwise_groups(problem, t, problem.n);
      const std::int64_t of_device = t.resident * std::max(device.info().compute_units, 1);
      if (2 * groups < of_device) continue;
      const std::int64_t strips = filter ? t.blocks_of_part / t.pixels() : divide_up(groups, of_device);
      const std::int64_t time = strips * (round_up(t.rows + t.window - 1, t.turn) + 2 * t.turn);
      if (time < least) least = time, best = t;
    }
  return best;
}

}  // namespace

std::int64_t depthwise_staged_bytes(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  const Sides of(problem);
  return of.in_group * of.g.r * of.g.s * (t.lanes * t.channels + 4) * 4;
}

bool depthwise_may_hold_alone(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  return problem.pass != Pass::backward_filter && t.paired && t.holds_taps && t.channels > 1;
}

void fill_depthwise(const Conv2dProblem& problem, DepthwiseTiling& t) {
  const Sides of(problem);
  const Conv2dShape& g = of.g;
  const bool data = problem.pass == Pass::backward_data, filter = problem.pass == Pass::backward_filter;
  const std::int64_t vector = 16 / size_of(problem.type);
  t.row_blocks = divide_up(of.out_h, t.rows), t.column_blocks = divide_up(of.out_w, t.columns);
  t.down = span_of(t.rows, filter ? t.tap_rows : g.r, g.stride_h, g.dilation_h, g.pad_top, data);
  t.along = span_of(t.columns, g.s, g.stride_w, g.dilation_w, g.pad_left, data);
  if (g.nhwc) {
    t.y_vector = t.channels;
  } else {
    t.y_vector = power_of_two_in(std::gcd(of.out_w, t.columns), vector);
    t.x_vector = power_of_two_in(std::gcd(of.in_w, data ? t.columns / g.stride_w : t.columns * g.stride_w), vector);
  }
  const std::int64_t step = data ? 1 : g.stride_h;  // of strips
  t.window = (g.r - 1) * g.dilation_h / step + 1, t.turn = t.window * divide_up(least_coming, t.window * step);
  const std::int64_t of_row = t.open_rows() * t.columns * t.channels * t.inputs * g.s;
  // Of a gradient's taps each pixel meets those of its residues alone.
  const std::int64_t of_block = of_row * g.r / (data && t.planes > 0 ? g.stride_h * g.stride_w : 1);
  t.unrolls_rows = of_block <= most_unrolled;
  t.holds_taps = t.unrolls_rows && g.r * g.s * t.channels * t.inputs <= most_held;
  t.tap_vector = power_of_two_in(g.r * g.s * t.channels, vector);
  t.stages_taps = g.nhwc && !filter && t.alone == 0 && depthwise_staged_bytes(problem, t) <= most_staged_bytes;
  if (t.planes == 0) {
    t.group = DepthwiseTiling::most_items;
  } else {
    t.group = round_up(t.planes * t.blocks() * t.lanes, 32);
    t.copied = g.nhwc ? t.channels : power_of_two_in(t.planes * of.in_h * of.in_w, vector);
    t.out_copied = g.nhwc ? 1 : power_of_two_in(t.planes * of.out_h * of.out_w, vector);
  }
}

std::string depthwise_tiling_refusal(const Conv2dProblem& problem, const DepthwiseTiling& t,
                                     const devices::Device& device) {
  std::string reason = block_refusal(problem, t);
  return reason.empty() && t.planes > 0 ? depthwise_planes_refusal(problem, t, device) : reason;
}

std::int64_t depthwise_part_bytes(const Conv2dProblem& problem) {
  return checked_multiply(elements_of(problem).w, 4, "a part's sums");
}

std::string depthwise_refusal(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  const auto above = [](const char* what, std::int64_t value, std::int64_t most) {
    return fmt::format("{} {}, and this variant takes at most {}", what, value, most);
  };
  if (g.groups == 1 && g.c_group * g.k_group > 1)
    return fmt::format("{} and {} channels are one group, and this variant is for several", g.c, g.k);
  if (const std::int64_t channels = std::max(g.c_group, g.k_group); channels > most_channels)
    return above("the channels of a group are", channels, most_channels);
  if (const std::int64_t taps = std::max(g.r, g.s); taps > most_taps)
    return above("the taps along an axis are", taps, most_taps);
  const std::int64_t furthest = std::max(g.dilation_h, g.dilation_w);
  if (furthest > most_reach) return above("the dilation is", furthest, most_reach);
  if (const std::int64_t reach = std::max((g.r - 1) * g.dilation_h, (g.s - 1) * g.dilation_w) + 1; reach > most_reach)
    return above("the rows or columns that a dilated filter reaches over are", reach, most_reach);
  if (const std::int64_t stride = std::max(g.stride_h, g.stride_w); stride > most_stride)
    return above("the stride is", stride, most_stride);
  if (const std::int64_t pad = std::max({g.pad_top, g.pad_left, problem.pad_bottom, problem.pad_right});
      pad >= most_reach)
    return above("the padding is", pad, most_reach - 1);
  const std::int64_t extent = std::max({g.n, g.c, g.k, g.h, g.w});
  if (extent > most_extent) return above("an extent is", extent, most_extent);
  // 32-bit numbers of blocks of one pixel, whatever the tiling.
  const std::int64_t pixels = std::max(g.h * g.w, g.p * g.q);
  const std::int64_t channels = std::max(g.c, g.k) * std::min(g.c_group, g.k_group);
  const std::int64_t images = problem.pass == Pass::backward_filter ? g.n : channels;
  if (pixels >= most_numbers / 2 || images >= most_numbers / 2 / pixels)
    return fmt::format("{} planes of {} pixels are more than 32-bit numbers count", images, pixels);
  return {};
}

std::int64_t depthwise_groups(const Conv2dProblem& problem, const DepthwiseTiling& t, std::int64_t images) {
  const bool nhwc = problem.layout == Layout::nhwc;
  const std::int64_t unit_blocks = divide_up(t.units, t.lanes);
  if (t.planes > 0) return nhwc ? divide_up(images, t.planes) * unit_blocks : divide_up(images * t.units, t.planes);
  return nhwc ? divide_up(images * t.blocks(), t.pixels()) * unit_blocks
              : divide_up(images * t.blocks() * t.units, t.group);
}

DepthwiseChoice depthwise_tiling(const Conv2dProblem& problem, const devices::Device& device,
                                 const SolverOptions& request) {
  DepthwiseTiling t;
  choose_channels(problem, t);
  t.waves = waves_for(problem, t);
  if (!request.tuning.empty()) {
    const Tuning asked_for = Tuning::parse(request.tuning);
    t.rows = asked_for.at("rows"), t.columns = asked_for.at("columns"), t.lanes = asked_for.at("lanes");
    t.planes = asked_for.at("planes"), t.resident = asked_for.at("resident"), t.waves = asked_for.at("waves");
    t.async = asked_for.at("async"), t.alone = asked_for.at("alone");
    t.ahead = asked_for.at("ahead");
    fill_depthwise(problem, t);
    if (std::string reason = depthwise_tiling_refusal(problem, t, device); !reason.empty()) return {t, reason};
  } else if (const std::optional<DepthwiseTiling> planes = depthwise_planes_tiling(problem, t, device)) {
    return {*planes};
  } else if (const std::optional<DepthwiseTiling> strips =
                 strips_tiling(problem, t, device, request.max_workspace_bytes)) {
    return {*strips};
  } else {
    DepthwiseChoice blocks = blocks_tiling(problem, t, device);
    if (!blocks.refusal.empty()) return blocks;
    t = blocks.tiling;
  }
  if (problem.pass == Pass::backward_filter) choose_parts(problem, device, request.max_workspace_bytes, t);
  return {t};
}

std::span<const Tunable> depthwise_tunables() {
  static const std::vector<Tunable> all = {{"rows", {1, 2, 3, 4, 5, 6, 7, 8, 14, 28, 56}},
                                           {"columns", {1, 2, 3, 4, 5, 6, 7, 8}},
                                           {"lanes", {1, 2, 4, 8, 16, 32}},
                                           {"planes", {0, 1, 2, 4, 8, 16, 32, 64}},
                                           {"resident", {1, 2, 3, 4, 5, 6, 8, 12}},
                                           {"waves", {0, 1, 2, 4}},
                                           {"async", {0, 1}},
                                           {"alone", {0, 1}},
                                           {"ahead", {0, 1}}};
  return all;
}
Tuning tuning_of(const DepthwiseTiling& t) {
  return {{"rows", t.rows},     {"columns", t.columns},   {"lanes", t.lanes},
          {"planes", t.planes}, {"resident", t.resident}, {"waves", t.waves},
          {"async", t.async},   {"alone", t.alone},       {"ahead", t.ahead}};
}

double depthwise_chain(const Conv2dProblem& problem, const DepthwiseTiling& t) {
  if (problem.pass != Pass::backward_filter) return longest_sum(problem);
  // A work item's blocks; a group's work items, sixteen and the rest; an adder's parts, and the adders.
  const std::int64_t blocks = divide_up(t.blocks_of_part, t.pixels());
  const std::int64_t first = std::min<std::int64_t>(t.pixels(), 16);
  const std::int64_t of_parts = t.parts > 1 ? divide_up(t.parts, t.adders) + t.adders : 0;
  return static_cast<double>(blocks * t.rows * t.columns + first + t.pixels() / first + of_parts);
}

double depthwise_cost(const Conv2dProblem& problem, const DepthwiseTiling& t, const devices::Device& device) {
  double launches = 1, bytes = least_bytes(problem);
  if (t.parts > 1) launches = 2, bytes += 2 * static_cast<double>(t.parts * depthwise_part_bytes(problem));
  return launches * launch_cost(device) + std::max(byte_cost(device) * bytes, total_work(problem, t, device));
}

}  // namespace omniconv::operations
