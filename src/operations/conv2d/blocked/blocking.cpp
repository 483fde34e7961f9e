#include "operations/conv2d/blocked/blocking.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/conv2d.h"
#include "operations/workspace_limit.h"
#include "vector/matrix/matrix_tiles.h"

namespace omniconv::operations {
namespace {

using kernels::PanelCut, kernels::even_part;

// Steps that a tile adds up in registers, and so channels: its panel of filters stays in the first cache while the
// block passes by; for the matrix unit, whose sums are the larger part, in the second.
constexpr std::int64_t chunk_steps = 256, matrix_chunk_steps = 600;
// Of a block: the copy of a chunk's source, which the second cache holds (2 MB of processors with a matrix unit), and
// outputs, so that panels of filters that come from farther away are worth their way.
constexpr std::int64_t vectors_plane_bytes = 128 << 10, matrix_plane_bytes = 512 << 10, most_slots = 512;
// Of one chunk, whose sums are of one panel at a time: fewer rows beside a block's are copied twice.
constexpr std::int64_t most_matrix_slots = 2048;
// Rows longer than that are cut.
constexpr std::int64_t longest_row = 1024;
// Sums of an item, twice the copy, stay in the second cache.
constexpr std::int64_t sums_of_plane = 2;
// Items of each thread, so that all end at nearly the same time.
constexpr std::int64_t items_per_thread = 2;
constexpr std::int64_t alignment = 16;  // elements

}  // namespace

BlockedCut::BlockedCut(const Conv2dProblem& problem, int of_threads, std::int64_t workspace_limit,
                       bool prepared_filters, BlockedUnit unit)
    : shape(problem),
      forward(problem.pass == Pass::forward),
      prepared(prepared_filters),
      real(problem.type == DataType::f64 ? DataType::f64 : DataType::f32),
      threads(of_threads),
      terms(unit == BlockedUnit::matrix ||
                    (unit == BlockedUnit::pairs && problem.type == DataType::bf16 && kernels::has_pair_products())
                ? kernels::pair_terms
                : 1),
      depth(unit == BlockedUnit::matrix ? even_part(divide_up(source_channels(), terms), kernels::matrix_side) : 0),
      source(depth == 0 ? divide_up(source_channels(), terms) : round_up(divide_up(source_channels(), terms), depth)),
      target(forward ? shape.k_group : shape.c_group),
      down(BlockedAxis::down(shape, forward)),
      along(BlockedAxis::along(shape, forward)),
      tile(depth == 0 ? kernels::register_tile(real, target)
                      : kernels::RegisterTile{kernels::matrix_tile, kernels::matrix_tile, kernels::matrix_side}),
      filters(PanelCut::even(target, tile.rows)),
      panel_rows(filters.tallest()) {
  const std::int64_t of_taps =
      std::max<std::int64_t>(checked_multiply(down.most_taps(), along.most_taps(), "the taps"), 1);
  const std::int64_t plane_bytes = whole_plane_bytes(),
                     chunk = std::max<std::int64_t>((depth == 0 ? chunk_steps : matrix_chunk_steps) / of_taps, 1);
  channels = depth == 0
                 ? PanelCut::even(source, chunk)
                 : PanelCut::full(source, depth * even_part(source / depth, std::max<std::int64_t>(chunk / depth, 1)));
  set_block(plane_bytes);
  filter_elements(), workspace_bytes();  // throw where they pass 2^63
  // Fewer rows may take more: whole ones may share their zeros.
  if (workspace_limit >= 0)
    keep_to_limit(
        workspace_limit, plane_bytes, [&](std::int64_t bytes) { set_block(bytes); }, [&] { return workspace_bytes(); });
  set_taps();
}

std::int64_t BlockedCut::whole_plane_bytes() const {
  return depth == 0 ? vectors_plane_bytes : matrix_plane_bytes;
}

// Rows and columns of a block, or images, and then panels of filters.
void BlockedCut::set_block(std::int64_t bytes) {
  const std::int64_t plane_bytes = whole_plane_bytes(),
                     whole_slots = depth > 0 && channels.panels == 1 ? most_matrix_slots : most_slots,
                     slots_at_most = std::max<std::int64_t>(whole_slots * bytes / plane_bytes, 1),
                     room = std::max<std::int64_t>(bytes / size_of(real) / channels.tallest(), 1),
                     of_row = along.count() > longest_row ? longest_row / 2 : along.count();
  images = 1, rows = 1;
  columns = even_part(along.count(), std::clamp<std::int64_t>(of_row * bytes / plane_bytes, 1, of_row));
  set_geometry();
  const auto fits = [&] { return plane <= room && slots() <= slots_at_most; };
  if (columns == along.count()) {
    std::int64_t least = 1, most = std::min(down.count(), slots_at_most);
    while (least < most) {
      rows = (least + most + 1) / 2;
      set_geometry();
      fits() ? least = rows : most = rows - 1;
    }
    rows = even_part(down.count(), least);
    set_geometry();
    if (rows == down.count()) {
      images = even_part(
          shape.n, std::clamp<std::int64_t>(std::min(room / std::max<std::int64_t>(plane, 1), slots_at_most / slots()),
                                            1, shape.n));
      set_geometry();
    }
  }
  share_out(bytes);
}

// Panels of an item, whose sums the second cache holds.
std::int64_t BlockedCut::most_range(std::int64_t bytes) const {
  if (finishes_panels()) return filters.panels;
  const std::int64_t of_panel =
      static_cast<std::int64_t>(along.classes.size()) * panel_rows * sums_pitch * size_of(real);
  return std::clamp<std::int64_t>(sums_of_plane * bytes / of_panel, 1, filters.panels);
}

// Where blocks are few, they become smaller, or are multiplied with a part of the filters, so that the last thread ends
// as soon as can be.
void BlockedCut::share_out(std::int64_t bytes) {
  const std::int64_t enough = items_per_thread * threads, all_rows = rows, all_images = images;
  range_panels = even_part(filters.panels, most_range(bytes));
  if (items() >= enough) return;
  struct Cut {
    std::int64_t images, rows, range_panels;
  };
  Cut best{images, rows, range_panels};
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t parts = 1; parts <= enough; ++parts) {
    const Cut before{images, rows, 0};
    if (all_images > 1)
      images = even_part(shape.n, divide_up(all_images, parts));
    else
      rows = even_part(down.count(), divide_up(all_rows, parts));
    if (parts > 1 && images == before.images && rows == before.rows) continue;
    set_geometry();
    const double copy = copy_products(), of_panel = panel_products();
    for (std::int64_t ranges = 1; ranges <= std::min(filters.panels, enough); ++ranges) {
      range_panels = even_part(filters.panels, std::min(most_range(bytes), divide_up(filters.panels, ranges)));
      const double last = static_cast<double>(rounds()) * (copy + static_cast<double>(range_panels) * of_panel);
      if (last < least) least = last, best = {images, rows, range_panels};
    }
  }
  images = best.images, rows = best.rows, range_panels = best.range_panels;
  set_geometry();
}

void BlockedCut::set_geometry() {
  width = columns + along.reach();
  // Zeros before a row's first element, and behind its last one, in each phase: so many are shared.
  std::int64_t shared = columns == along.count() ? width : 0;
  for (const std::int64_t phase : along.phases) {
    const auto count_until = [&](std::int64_t end) {  // elements of the source below `end`
      return std::clamp<std::int64_t>(
          end - phase <= along.low * along.unit ? 0 : divide_up(end - phase - along.low * along.unit, along.unit), 0,
          width);
    };
    shared = std::min({shared, count_until(0), width - count_until(along.extent)});
  }
  pitch = width - shared;
  const std::int64_t of_rows = rows + down.reach(),
                     phases = static_cast<std::int64_t>(down.phases.size() * along.phases.size());
  phase_plane = checked_add(checked_multiply(of_rows, pitch, "a plane of the source"), shared, "a plane of the source");
  plane = checked_multiply(phases, phase_plane, "a plane of the source");
  sums_pitch = round_up(checked_multiply(images, slots(), "the sums"), alignment);
  const auto vectors_of = [&](std::int64_t count) { return divide_up(count, tile.lanes); };
  flattened = vectors_of(slots()) <= rows * vectors_of(columns);
  const bool is_whole = along.classes.size() == 1 && down.classes.size() == 1 && !shape.nhwc;
  stores_rows = is_whole && (!flattened || (pitch == columns && columns == along.count()));
}

void BlockedCut::set_taps() {
  std::int64_t taps_before = 0;
  for (const BlockedClass& of_rows : down.classes)
    for (const BlockedClass& of_columns : along.classes) {
      BlockedTaps some{{}, {}, taps_before * filters.panels * panel_pitch(), {}};
      for (const BlockedTap& r : of_rows.taps)
        for (const BlockedTap& s : of_columns.taps) {
          some.taps.push_back(r.tap * shape.s + s.tap);
          some.offsets.push_back((r.phase * static_cast<std::int64_t>(along.phases.size()) + s.phase) * phase_plane +
                                 (r.index - down.low) * pitch + s.index - along.low);
        }
      const auto count = static_cast<std::int64_t>(some.taps.size());
      for (std::int64_t more = 0; depth == 0 && more < 2; ++more) {
        std::vector<std::int64_t>& steps = some.steps[static_cast<std::size_t>(more)];
        // Under nhwc channels of a tap follow each other in w, else taps of a channel.
        const std::int64_t of_chunk = channels.height + more;
        for (std::int64_t i = 0; i < of_chunk * count; ++i) {
          const std::int64_t c = shape.nhwc ? i % of_chunk : i / count, tap = shape.nhwc ? i / of_chunk : i % count;
          steps.push_back(c * images * plane + some.offsets[static_cast<std::size_t>(tap)]);
        }
      }
      taps_before += count;
      taps.push_back(std::move(some));
    }
}

std::int64_t BlockedCut::filter_elements() const {
  const std::int64_t of_panel = checked_multiply(panel_rows, source, "the filters");
  return checked_multiply(checked_multiply(filters.panels, of_panel, "the filters"), shape.r * shape.s, "the filters");
}
std::int64_t BlockedCut::ranges() const {
  return divide_up(filters.panels, range_panels);
}
std::int64_t BlockedCut::blocks(const BlockedClass& of_rows) const {
  return checked_multiply(divide_up(shape.n, images) * divide_up(of_rows.count, rows),
                          divide_up(along.count(), columns), "the blocks");
}
std::int64_t BlockedCut::items() const {
  std::int64_t all = 0;
  for (const BlockedClass& of_rows : down.classes) all = checked_add(all, blocks(of_rows), "the blocks");
  return checked_multiply(all, shape.groups * ranges(), "the blocks");
}

// Whole tiles are read, and so some elements behind the last.
std::int64_t BlockedCut::plane_elements() const {
  return round_up(checked_multiply(channels.tallest() * images, plane, "the source's copy") + tile.columns, alignment);
}
std::int64_t BlockedCut::sum_elements() const {
  const std::int64_t of_rows = (finishes_panels() ? 1 : range_panels) * panel_rows;
  return checked_multiply(of_rows * static_cast<std::int64_t>(along.classes.size()), sums_pitch, "the sums");
}
// A row of outputs, of all classes; under nhwc of all channels of a range; or what is read of a row of the source. The
// matrix unit's sums have channels side by side already, and a depth of channels of its source is turned.
std::int64_t BlockedCut::row_elements() const {
  const std::int64_t of_source = depth > 0    ? depth
                                 : shape.nhwc ? channels.height + 1
                                              : 1,
                     of_target = shape.nhwc && depth == 0 ? range_panels * panel_rows
                                                          : static_cast<std::int64_t>(along.classes.size());
  return round_up(
      checked_add(checked_multiply(width, of_source, "a row"), checked_multiply(columns, of_target, "a row"), "a row"),
      alignment);
}
std::int64_t BlockedCut::workspace_bytes() const {
  std::int64_t elements =
      checked_add(plane_elements(), checked_add(sum_elements(), row_elements(), "a block"), "a block");
  elements = checked_multiply(threads, elements, "the blocks");
  if (!prepared)
    elements = checked_add(elements, checked_multiply(shape.groups, filter_elements(), "the filters"), "the workspace");
  return checked_multiply(elements, size_of(real), "the workspace");
}

// Backward to the data, taps are sorted by the classes that meet them.
PreparedFormat BlockedCut::format(const Conv2dProblem& problem) const {
  const auto sorted = [](const BlockedAxis& axis, std::int64_t stride, std::int64_t dilation, std::int64_t pad) {
    return fmt::format("{} of stride {}, dilation {}, padding {}", axis.classes.size(), stride, dilation % stride,
                       pad % stride);
  };
  const std::string classes = forward || (shape.stride_h == 1 && shape.stride_w == 1)
                                  ? ""
                                  : fmt::format(", {}classes {} and {}", shape.flip ? "flip " : "",
                                                sorted(down, shape.stride_h, shape.dilation_h, shape.pad_top),
                                                sorted(along, shape.stride_w, shape.dilation_w, shape.pad_left));
  return {fmt::format("{} w of {}{} k{}c{}r{}s{}, {} groups{}, in panels of {} {} and chunks of {}", name(problem.type),
                      shape.nhwc ? "nhwc" : "nchw", forward ? "" : " bwd_data", problem.k, problem.c, problem.r,
                      problem.s, problem.groups, classes, panel_rows,
                      terms == 1   ? name(real)
                      : depth == 0 ? "pairs"
                                   : fmt::format("{} pairs", depth),
                      channels.height),
          checked_multiply(shape.groups * size_of(real), filter_elements(), "the prepared filters")};
}

double BlockedCut::chain() const {
  std::size_t most = 1;
  for (const BlockedTaps& some : taps) most = std::max(most, some.taps.size());
  if (depth == 0)
    return static_cast<double>(terms) * static_cast<double>(channels.tallest()) * static_cast<double>(most) +
           static_cast<double>(channels.panels - 1);
  // A term is added to those before it of its chain, the chains to each other, then each instruction's to the sum,
  // which goes on from chunk to chunk.
  return static_cast<double>(depth) + static_cast<double>(source / depth) * static_cast<double>(most);
}

std::int64_t BlockedCut::rounds() const {
  return divide_up(items(), threads);
}

double BlockedCut::item_products() const {
  return copy_products() + static_cast<double>(range_panels) * panel_products();
}

// Channels side by side to rows; or the other way for the matrix unit.
double BlockedCut::copy_products() const {
  const double of_element = shape.nhwc == (depth == 0) ? 16 : 4;
  return of_element * static_cast<double>(source) * static_cast<double>(images) * static_cast<double>(plane);
}

double BlockedCut::panel_products() const {
  constexpr double above_peak = 1.1;
  const auto real_of = [](std::int64_t value) { return static_cast<double>(value); };
  const double runs = real_of((flattened ? 1 : rows) * images),
               vector_lanes = real_of(kernels::register_tile(real, target).lanes);
  const double of_all_classes = depth == 0 ? tile_cycles() : matrix_cycles();
  return above_peak * 2 * vector_lanes * runs * of_all_classes / real_of(std::ssize(down.classes));
}

// Of a run of a panel's tiles. A step takes a cycle for two vectors of sums, or for two loads: of each filter's
// element, and two of a vector that begins anywhere; and no less than an addition takes. A tile takes some cycles to
// begin and end.
double BlockedCut::tile_cycles() const {
  constexpr double addition = 4, of_tile = 30;
  const auto real_of = [](std::int64_t value) { return static_cast<double>(value); };
  const std::int64_t most = tile.columns / tile.lanes, vectors = divide_up(flattened ? slots() : columns, tile.lanes),
                     whole = vectors / most;
  const double high = real_of(target) / real_of(filters.panels);
  double cycles = 0;
  for (const std::int64_t count_of_taps : tap_counts()) {
    const double steps = real_of(source) * real_of(count_of_taps);
    const auto of_vectors = [&](std::int64_t count) {
      const double products = high * real_of(count) / 2, loads = (high + 2 * real_of(count)) / 2;
      return steps * std::max({products, loads, addition}) + of_tile * real_of(channels.panels);
    };
    cycles += real_of(whole) * of_vectors(most) + (vectors % most > 0 ? of_vectors(vectors % most) : 0);
  }
  return cycles;
}

// Of all pairs of classes.
std::vector<std::int64_t> BlockedCut::tap_counts() const {
  std::vector<std::int64_t> counts;
  for (const BlockedClass& of_rows : down.classes)
    for (const BlockedClass& of_columns : along.classes)
      counts.push_back(std::ssize(of_rows.taps) * std::ssize(of_columns.taps));
  return counts;
}

// The same of the matrix unit: an instruction takes a cycle for each row of its sums, whatever its depth and columns;
// sums are read and written by rows.
double BlockedCut::matrix_cycles() const {
  const auto real_of = [](std::int64_t value) { return static_cast<double>(value); };
  const double pixels = real_of(flattened ? slots() : columns),
               tiles = real_of(divide_up(panel_rows, kernels::matrix_side));
  double cycles = 0;
  for (const std::int64_t count_of_taps : tap_counts()) {
    const double blocks = real_of(source / depth) * real_of(count_of_taps);
    cycles += tiles * pixels * (blocks + 4 * real_of(channels.panels));
  }
  return cycles;
}

BlockedBlock BlockedCut::block(std::int64_t item) const {
  std::size_t row_class = 0;
  const auto of_class = [&] { return blocks(down.classes[row_class]) * shape.groups * ranges(); };
  while (item >= of_class()) item -= of_class(), ++row_class;
  const BlockedClass& of_rows = down.classes[row_class];
  const std::int64_t across = divide_up(along.count(), columns), downwards = divide_up(of_rows.count, rows),
                     all = blocks(of_rows), of_range = item % all, range = item / all % ranges(),
                     column = of_range % across * columns, row = of_range / across % downwards * rows,
                     image = of_range / across / downwards * images, panel = range * range_panels;
  return {.row_class = row_class,
          .group = item / all / ranges(),
          .first_panel = panel,
          .panels = std::min(range_panels, filters.panels - panel),
          .image = image,
          .images = std::min(images, shape.n - image),
          .row = row,
          .rows = std::min(rows, of_rows.count - row),
          .column = column,
          .columns = std::min(columns, along.count() - column)};
}

// Of elements first + i * unit of a row, those that are there.
BlockedRow BlockedCut::row_part(std::int64_t first) const {
  const auto [begin, end] = part_within(first, along.unit, along.extent, width);
  return begin == end ? nowhere() : BlockedRow{begin, end, first + begin * along.unit};
}

const char* blocked_refusal(const Conv2dProblem& problem, bool forward) {
  constexpr double most_classes = 16, most_taps = 1 << 16, most_between = 1 << 28;
  constexpr std::int64_t farthest = std::int64_t{1} << 40;
  const auto product = [](std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); };
  if (!forward && product(problem.stride_h, problem.stride_w) > most_classes)
    return "serves strides of bwd_data whose product is at most 16";
  if (product(problem.r, problem.s) > most_taps) return "serves filters of at most 2^16 taps";
  if (std::max({problem.stride_h, problem.stride_w, problem.pad_top, problem.pad_left}) > farthest)
    return "serves strides and paddings of at most 2^40";
  const Conv2dShape shape(problem);
  if (product(BlockedAxis::down(shape, forward).reach() + 1, BlockedAxis::along(shape, forward).reach() + 1) >
      most_between)
    return "serves taps within 2^28 elements of a plane: what lies between them is copied";
  return nullptr;
}

const char* tiles_refusal(const Conv2dProblem& problem, const SolverOptions& request) {
  if (problem.type != DataType::bf16) return "the processor's matrix unit multiplies bf16";
  if (request.units == Units::fma) return "the matrix unit is no unit of fused multiply-adds";
  if (request.relative_error) return "the matrix unit takes numbers below the normal range for zeros";
  if (kernels::matrix_unit() == kernels::MatrixUnit::none)
    return "this processor has no matrix unit for bf16 (AMX), or the system keeps it";
  return nullptr;
}

// Of a run. README.md says where the numbers come from.
double blocked_cost(const Conv2dProblem& problem, const BlockedCut& cut, const devices::Device& device) {
  constexpr double phase = 1e5, of_filter = 10;
  // Channels from rows to side by side; or the other way for the matrix unit.
  const double of_output = (problem.layout == Layout::nhwc) == (cut.depth == 0) ? 16 : 2;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double multiplied = real(cut.rounds()) * real(cut.threads) * cut.item_products(),
               stored = real(cut.forward ? elements_of(problem).y : elements_of(problem).x),
               packed = cut.prepared ? 0 : real(elements_of(problem).w);
  return phase * (cut.prepared ? 1 : 2) +
         (multiplied + of_output * stored + of_filter * packed) * (cut.real == DataType::f64 ? 2 : 1) +
         byte_cost(device) * least_bytes(problem);
}

Answer blocked_offer(const Conv2dProblem& problem, const Conv2dProblem& cut_problem, const devices::Device& device,
                     const SolverOptions& request, BlockedUnit unit, const char* refusal,
                     const std::function<std::shared_ptr<const PlanBody>(const BlockedCut&)>& make_plan) {
  const auto* const cpu = dynamic_cast<const devices::CpuDevice*>(&device);
  if (cpu == nullptr) return "this variant runs on the CPU";
  if (problem.pass == Pass::backward_filter) return "serves the forward pass and bwd_data";
  if (refusal == nullptr) refusal = blocked_refusal(problem, problem.pass == Pass::forward);
  if (refusal != nullptr) return refusal;
  const bool prepared = !request.prepared.empty();
  if (prepared && request.prepared != std::vector<std::string>{"w"}) return "has a prepared form of w alone";
  try {
    const BlockedCut cut(cut_problem, cpu->threads(), request.max_workspace_bytes, prepared, unit);
    std::map<std::size_t, PreparedFormat> formats;
    if (prepared) formats[1] = cut.format(problem);
    return Offer{
        .cost = {blocked_cost(problem, cut, device)},
        .bound = conv2d_bound(problem, cut.chain()),
        .workspace_bytes = cut.workspace_bytes(),
        .prepared = formats,
        .plan = [=] { return make_plan(cut); },
    };
  } catch (const Error& error) {  // panels and copies of arrays that hold nearly 2^63 bytes
    return error.what();
  }
}

}  // namespace omniconv::operations
