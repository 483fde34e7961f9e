// Convolution by its definition on the CPU, blocked for registers and caches.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/checked.h"
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/blocked/blocking.h"
#include "operations/conv2d/blocked/filters.h"
#include "operations/conv2d/conv2d.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_panels.h"
#include "vector/matrix/offset_tiles.h"
#include "vector/matrix/turn.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;

template <typename Element>
struct Memory {
  const std::byte *source, *w, *bias;
  std::byte* target;
  Element *filters, *rooms;
};

// What a thread works in.
template <typename Element>
struct Room {
  Element* planes;
  typename kernels::SumOf<Element>::Type *sums, *row;
};

// Channels that are fetched ahead of their copies: each lies on pages of its own, and no hardware follows.
constexpr std::int64_t channels_ahead = 2;

template <typename Element>
class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const BlockedCut& cut)
      : Conv2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<CpuDevice&>(*device)),
        cut_(cut),
        g_(cut.shape),
        size_(size_of(problem.type)),
        // What is added to outputs as they were comes in the same order, wherever sums lie: bits tell of no limit.
        stores_sums_(cut.stores_rows && size_of(problem.type) == static_cast<std::int64_t>(sizeof(Real)) &&
                     !(problem.accumulate && (problem.bias || cut.channels.panels > 1))),
        copies_rows_(!has_pairs && !g_.nhwc && size_ == static_cast<std::int64_t>(sizeof(Real))) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, from, to] {
      pack_filters(host(from), reinterpret_cast<Element*>(host(to)));
    }));
  }

 private:
  using Real = typename kernels::SumOf<Element>::Type;
  static constexpr bool has_pairs = !std::is_same_v<Element, Real>;

  void execute(const Conv2dRun& run) const;
  void pack_filters(const std::byte* w, Element* to) const;
  void compute(const Memory<Element>& memory, const BlockedBlock& block, const Room<Element>& room) const;
  void clear_planes(const Memory<Element>& memory, const BlockedBlock& block) const;
  void copy_source(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t chunk,
                   const Room<Element>& room) const;
  void copy_plane(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t channel, std::int64_t image,
                  std::int64_t first, const BlockedRow& part, Element* to) const;
  void fetch_row(const std::byte* from, const BlockedRow& part) const;
  void copy_row(const std::byte* from, std::int64_t elements, std::int64_t channels, const BlockedRow& part,
                const Room<Element>& room, Element* to) const;
  void copy_reals(const std::byte* from, std::int64_t channels, std::int64_t count, const Room<Element>& room,
                  Real* to) const;
  void copy_pairs(const std::byte* from, std::int64_t elements, std::int64_t channels, std::int64_t count,
                  const Room<Element>& room, Element* to) const;
  void multiply(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t chunk, std::int64_t panel,
                const Room<Element>& room) const;
  void finish_planes(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t panel,
                     const Room<Element>& room) const;
  void finish_pixels(const Memory<Element>& memory, const BlockedBlock& block, const Room<Element>& room) const;

  std::size_t column_classes() const { return cut_.along.classes.size(); }
  // Elements of the source's copy from one channel to the next.
  std::int64_t channel_pitch() const { return cut_.images * cut_.plane; }
  // Sums of a class of columns, for a panel's first row.
  Real* sums_of(const BlockedBlock& block, std::int64_t panel, std::size_t column_class,
                const Room<Element>& room) const {
    const std::int64_t line =
        cut_.finishes_panels() ? 0 : cut_.filters.start(panel) - cut_.filters.start(block.first_panel);
    const std::int64_t lines = (cut_.finishes_panels() ? 1 : cut_.range_panels) * cut_.panel_rows;
    return room.sums + (static_cast<std::int64_t>(column_class) * lines + line) * cut_.sums_pitch;
  }
  // The first output of a panel's first channel in a row of an image of the block.
  std::byte* target_of(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t panel, std::int64_t image,
                       std::int64_t row) const {
    const BlockedClass& of_rows = cut_.down.classes[block.row_class];
    return memory.target + cut_.target_at(block.image + image, block.group * cut_.target + cut_.filters.start(panel),
                                          of_rows.begin + (block.row + row) * of_rows.step,
                                          block.column * cut_.along.classes.front().step) *
                               size_;
  }
  DevicePointer device_;
  CpuDevice& cpu_;
  BlockedCut cut_;
  Conv2dShape g_;
  std::int64_t size_;  // of a stored element
  bool stores_sums_;   // where the results lie
  bool copies_rows_;   // of the source as they are, but for the stride
};

template <typename Element>
void Plan<Element>::execute(const Conv2dRun& run) const {
  auto* const workspace = reinterpret_cast<Element*>(host({run.workspace, 0}));
  const std::int64_t filters = cut_.prepared ? 0 : g_.groups * cut_.filter_elements();
  const Memory<Element> memory{.source = host(cut_.forward ? run.x : run.y),
                               .w = host(run.w),
                               .bias = problem().bias ? host(run.bias) : nullptr,
                               .target = host(cut_.forward ? run.y : run.x),
                               .filters = cut_.prepared ? reinterpret_cast<Element*>(host(run.w)) : workspace,
                               .rooms = workspace + filters};
  if (!cut_.prepared) pack_filters(memory.w, memory.filters);
  const std::int64_t of_thread = cut_.plane_elements() + cut_.sum_elements() + cut_.row_elements();
  cpu_.parallel_for(cut_.items(), [&](std::int64_t i, int slot) {
    Element* const room = memory.rooms + slot * of_thread;
    auto* const sums = reinterpret_cast<Real*>(room + cut_.plane_elements());
    compute(memory, cut_.block(i), {room, sums, sums + cut_.sum_elements()});
  });
}

template <typename Element>
void Plan<Element>::pack_filters(const std::byte* w, Element* to) const {
  const auto pairs = static_cast<std::int64_t>(cut_.taps.size());
  const std::int64_t of_group = pairs * cut_.filters.panels * cut_.channels.panels;
  cpu_.parallel_for(g_.groups * of_group, [&](std::int64_t i, int) {
    const std::int64_t group = i / of_group, panel = i / cut_.channels.panels % cut_.filters.panels;
    const auto pair = static_cast<std::size_t>(i % of_group / cut_.channels.panels / cut_.filters.panels);
    const std::int64_t chunk = i % cut_.channels.panels;
    pack_blocked_filters(cut_, problem().type, w, group, cut_.taps[pair], panel, cut_.channels.start(chunk),
                         cut_.channels.count(chunk), to + group * cut_.filter_elements());
  });
}

template <typename Element>
void Plan<Element>::compute(const Memory<Element>& memory, const BlockedBlock& block, const Room<Element>& room) const {
  if (!g_.nhwc && (cut_.down.classes[block.row_class].taps.empty() || cut_.along.most_taps() == 0))
    return clear_planes(memory, block);
  for (std::int64_t chunk = 0; chunk < cut_.channels.panels; ++chunk) {
    copy_source(memory, block, chunk, room);
    for (std::int64_t panel = block.first_panel; panel < block.first_panel + block.panels; ++panel) {
      multiply(memory, block, chunk, panel, room);
      if (!g_.nhwc && chunk + 1 == cut_.channels.panels) finish_planes(memory, block, panel, room);
    }
  }
  if (g_.nhwc) finish_pixels(memory, block, room);
}

// Outputs that no tap meets.
template <typename Element>
void Plan<Element>::clear_planes(const Memory<Element>& memory, const BlockedBlock& block) const {
  if (problem().accumulate) return;
  const std::int64_t step = cut_.along.classes.front().step, all = cut_.target_at(0, 0, 1, 0),
                     length = std::min(block.columns * step, all - block.column * step);
  for (std::int64_t panel = block.first_panel; panel < block.first_panel + block.panels; ++panel)
    for (std::int64_t image = 0; image < block.images; ++image)
      for (std::int64_t i = 0; i < cut_.filters.count(panel); ++i)
        for (std::int64_t row = 0; row < block.rows; ++row)
          std::fill_n(target_of(memory, block, panel, image, row) + i * cut_.target_at(0, 1, 0, 0) * size_,
                      length * size_, std::byte{0});
}

// A chunk's channels of what the block reads, with zeros where nothing is.
template <typename Element>
void Plan<Element>::copy_source(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t chunk,
                                const Room<Element>& room) const {
  const BlockedAxis &down = cut_.down, &along = cut_.along;
  const std::int64_t elements = cut_.channels.count(chunk), first_element = cut_.channels.start(chunk),
                     channel = block.group * cut_.source_channels();
  const std::int64_t together = g_.nhwc ? elements : 1;  // that lie side by side
  const std::int64_t plane_bytes = cut_.source_at(0, 1, 0, 0) * size_;
  for (std::size_t j = 0; j < along.phases.size(); ++j) {
    const BlockedRow part = cut_.row_part((block.column + along.low) * along.unit + along.phases[j]);
    for (std::int64_t c = 0; c < elements; c += together)
      for (std::int64_t image = 0; image < block.images; ++image)
        for (std::size_t i = 0; i < down.phases.size(); ++i) {
          Element* const plane = room.planes + c * channel_pitch() + image * cut_.plane +
                                 static_cast<std::int64_t>(i * along.phases.size() + j) * cut_.phase_plane;
          const std::int64_t first = (block.row + down.low) * down.unit + down.phases[i];
          if (copies_rows_) {
            copy_plane(memory, block, channel + first_element + c, block.image + image, first, part, plane);
            continue;
          }
          for (std::int64_t row = 0; row < block.rows + down.reach(); ++row) {
            const std::int64_t h = first + row * down.unit;
            const bool is_there = h >= 0 && h < down.extent;
            const std::int64_t at = first_element + c, channels = cut_.channels_in(at, together);
            const std::byte* const from =
                is_there ? memory.source +
                               cut_.source_at(block.image + image, channel + cut_.terms * at, h, part.from) * size_
                         : nullptr;
            const bool has_later =
                channel + cut_.terms * (at + channels_ahead + 1) <= g_.groups * cut_.source_channels();
            for (std::int64_t term = 0; is_there && has_later && !g_.nhwc && term < cut_.terms; ++term)
              fetch_row(from + (cut_.terms * channels_ahead + term) * plane_bytes, part);
            copy_row(from, together, channels, is_there ? part : cut_.nowhere(), room, plane + row * cut_.pitch);
          }
        }
  }
}

// Rows of one channel whose elements are copied as they are.
template <typename Element>
void Plan<Element>::copy_plane(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t channel,
                               std::int64_t image, std::int64_t first, const BlockedRow& part, Element* to) const {
  const std::int64_t unit = cut_.along.unit, count = part.end - part.begin;
  std::int64_t h = first;
  for (std::int64_t row = 0; row < block.rows + cut_.down.reach(); ++row, h += cut_.down.unit, to += cut_.pitch) {
    if (h < 0 || h >= cut_.down.extent || count == 0) {
      std::fill_n(to, cut_.width, Element{});
      continue;
    }
    const auto* const from =
        reinterpret_cast<const Element*>(memory.source) + cut_.source_at(image, channel, h, part.from);
    if (channel + channels_ahead < g_.groups * cut_.source_channels())
      fetch_row(reinterpret_cast<const std::byte*>(from + cut_.source_at(0, channels_ahead, 0, 0)), part);
    for (std::int64_t i = 0; i < part.begin; ++i) to[i] = {};
    for (std::int64_t i = part.end; i < cut_.width; ++i) to[i] = {};
    Element* const inside = to + part.begin;
    if (unit == 1)
      for (std::int64_t i = 0; i < count; ++i) inside[i] = from[i];
    else if (unit == 2)
      for (std::int64_t i = 0; i < count; ++i) inside[i] = from[2 * i];
    else
      for (std::int64_t i = 0; i < count; ++i) inside[i] = from[unit * i];
  }
}

template <typename Element>
void Plan<Element>::fetch_row(const std::byte* from, const BlockedRow& part) const {
  constexpr std::int64_t line = 64;
  const std::int64_t bytes = part.begin == part.end ? 0 : ((part.end - part.begin - 1) * cut_.along.unit + 1) * size_;
  for (std::int64_t at = 0; at < bytes; at += line) __builtin_prefetch(from + at);
}

// A row of some channels side by side, and so of as many elements or, of pairs, half of them.
template <typename Element>
void Plan<Element>::copy_row(const std::byte* from, std::int64_t elements, std::int64_t channels,
                             const BlockedRow& part, const Room<Element>& room, Element* to) const {
  for (std::int64_t c = 0; c < elements; ++c) {
    Element* const line = to + c * channel_pitch();
    for (std::int64_t i = 0; i < part.begin; ++i) line[i] = {};
    for (std::int64_t i = part.end; i < cut_.width; ++i) line[i] = {};
  }
  const std::int64_t count = part.end - part.begin;
  if (count == 0) return;
  if constexpr (has_pairs)
    copy_pairs(from, elements, channels, count, room, to + part.begin);
  else
    copy_reals(from, channels, count, room, to + part.begin);
}

template <typename Element>
void Plan<Element>::copy_reals(const std::byte* from, std::int64_t channels, std::int64_t count,
                               const Room<Element>& room, Real* to) const {
  const std::int64_t unit = cut_.along.unit;
  const DataType type = problem().type;
  const bool is_real = size_ == static_cast<std::int64_t>(sizeof(Real));
  const auto* const elements = reinterpret_cast<const Real*>(from);
  if (g_.nhwc) {
    const std::int64_t pitch = unit * g_.groups * cut_.source;
    if (!is_real) kernels::pack_panel({from, type, pitch, false}, channels, channels, count, room.row);
    kernels::turn(kernels::Turned<Real>{.from = is_real ? elements : room.row,
                                        .ld = is_real ? pitch : channels,
                                        .lines = count,
                                        .columns = channels,
                                        .to = to,
                                        .pitch = channel_pitch(),
                                        .add = false});
  } else if (unit == 1) {
    kernels::pack_panel({from, type, count, false}, count, count, 1, to);
  } else {
    kernels::pack_panel({from, type, unit, false}, 1, 1, count, to);
  }
}

template <typename Element>
void Plan<Element>::copy_pairs(const std::byte* from, std::int64_t elements, std::int64_t channels, std::int64_t count,
                               const Room<Element>& room, Element* to) const {
  const std::int64_t unit = cut_.along.unit;
  if (g_.nhwc) {
    const std::int64_t pitch = unit * g_.groups * cut_.source_channels();
    for (std::int64_t i = 0; i < count; ++i) {
      Real* const pixel = room.row + i * elements;  // whose bits are moved
      pixel[elements - 1] = 0;
      std::memcpy(pixel, from + i * pitch * size_, static_cast<std::size_t>(channels * size_));
    }
    kernels::turn(kernels::Turned<Real>{.from = room.row,
                                        .ld = elements,
                                        .lines = count,
                                        .columns = elements,
                                        .to = reinterpret_cast<Real*>(to),
                                        .pitch = channel_pitch(),
                                        .add = false});
    return;
  }
  const auto* const first = reinterpret_cast<const std::uint16_t*>(from);
  const std::uint16_t* const second = first + cut_.source_at(0, 1, 0, 0);
  if (channels < cut_.terms)
    for (std::int64_t i = 0; i < count; ++i) to[i] = {first[i * unit], 0};
  else
    kernels::pair_lines(first, second, unit, count, to);
}

template <typename Element>
void Plan<Element>::multiply(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t chunk,
                             std::int64_t panel, const Room<Element>& room) const {
  const std::int64_t rows = cut_.filters.count(panel), channels = cut_.channels.count(chunk);
  for (std::size_t j = 0; j < column_classes(); ++j) {
    const BlockedTaps& taps = cut_.taps_of(block.row_class, j);
    const auto count = static_cast<std::int64_t>(taps.taps.size());
    const std::int64_t columns = cut_.columns_of(block, cut_.along.classes[j]);
    Real* const sums = sums_of(block, panel, j, room);
    if (columns == 0) continue;
    if (count == 0) {
      std::fill_n(sums, rows * cut_.sums_pitch, Real{0});
      continue;
    }
    kernels::OffsetTiles<Element> tiles{
        .a = memory.filters + block.group * cut_.filter_elements() + taps.filters_before +
             panel * cut_.panel_pitch() * count + cut_.channels.start(chunk) * count * rows,
        .b = nullptr,
        .offsets = taps.steps[static_cast<std::size_t>(channels - cut_.channels.height)].data(),
        .steps = channels * count,
        .rows = rows,
        .columns = 0,
        .sums = nullptr,
        .ld = stores_sums_ ? cut_.target_at(0, 1, 0, 0) : cut_.sums_pitch,
        .add = chunk > 0 || (stores_sums_ && problem().accumulate),
    };
    const std::int64_t runs = cut_.flattened ? 1 : block.rows;
    tiles.columns = cut_.flattened ? (block.rows - 1) * cut_.pitch + columns : columns;
    for (std::int64_t image = 0; image < block.images; ++image)
      for (std::int64_t run = 0; run < runs; ++run) {
        const std::int64_t slot = run * cut_.pitch;
        tiles.b = room.planes + image * cut_.plane + slot;
        tiles.sums = stores_sums_ ? reinterpret_cast<Real*>(target_of(memory, block, panel, image, run))
                                  : sums + image * cut_.slots() + slot;
        kernels::multiply_offsets(tiles);
      }
  }
}

// Of a panel: rows of a channel's outputs lie side by side, those of several classes in turn.
template <typename Element>
void Plan<Element>::finish_planes(const Memory<Element>& memory, const BlockedBlock& block, std::int64_t panel,
                                  const Room<Element>& room) const {
  const DataType type = problem().type;
  const std::int64_t rows = cut_.filters.count(panel), channel = block.group * cut_.target + cut_.filters.start(panel),
                     step = cut_.along.classes.front().step, plane = cut_.target_at(0, 1, 0, 0),
                     all = cut_.target_at(0, 0, 1, 0);
  const kernels::GemmFinish finish{.type = type,
                                   .output = type,
                                   .row_bias = memory.bias == nullptr ? nullptr : memory.bias + channel * size_,
                                   .accumulate = problem().accumulate && !stores_sums_,
                                   .relu = problem().relu};
  if (stores_sums_ && finish.row_bias == nullptr && !finish.relu) return;
  const Real* const sums = sums_of(block, panel, 0, room);
  const std::int64_t together = cut_.flattened && cut_.stores_rows ? block.rows : 1;
  for (std::int64_t image = 0; image < block.images; ++image)
    for (std::int64_t row = 0; row < block.rows; row += together) {
      const std::int64_t slot = image * cut_.slots() + row * cut_.pitch;
      std::byte* const to = target_of(memory, block, panel, image, row);
      if (stores_sums_) {
        kernels::finish_tile(finish, reinterpret_cast<const Real*>(to), plane, rows, together * block.columns, to,
                             plane);
        continue;
      }
      if (step == 1) {
        kernels::finish_tile(finish, sums + slot, cut_.sums_pitch, rows, together * block.columns, to, plane);
        continue;
      }
      const std::int64_t length = std::min(block.columns * step, all - block.column * step);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < column_classes(); ++j) {
          const BlockedClass& some = cut_.along.classes[j];
          const Real* const from = sums_of(block, panel, j, room) + i * cut_.sums_pitch + slot;
          for (std::int64_t q = 0; q < cut_.columns_of(block, some); ++q) room.row[q * step + some.begin] = from[q];
        }
        kernels::finish_tile(finish, room.row, length, 1, length, to + i * plane * size_, plane);
      }
    }
}

// Of a range of filters: channels of an output lie side by side.
template <typename Element>
void Plan<Element>::finish_pixels(const Memory<Element>& memory, const BlockedBlock& block,
                                  const Room<Element>& room) const {
  const DataType type = problem().type;
  const BlockedClass& of_rows = cut_.down.classes[block.row_class];
  const std::int64_t line = cut_.filters.start(block.first_panel),
                     lines = cut_.filters.start(block.first_panel + block.panels) - line,
                     channel = block.group * cut_.target + line, pixel = cut_.target_at(0, 0, 0, 1);
  const kernels::GemmFinish finish{.type = type,
                                   .output = type,
                                   .column_bias = memory.bias == nullptr ? nullptr : memory.bias + channel * size_,
                                   .accumulate = problem().accumulate,
                                   .relu = problem().relu};
  for (std::int64_t image = 0; image < block.images; ++image)
    for (std::int64_t row = 0; row < block.rows; ++row)
      for (std::size_t j = 0; j < column_classes(); ++j) {
        const BlockedClass& some = cut_.along.classes[j];
        const std::int64_t columns = cut_.columns_of(block, some), slot = image * cut_.slots() + row * cut_.pitch;
        if (columns == 0) continue;
        kernels::turn(kernels::Turned<Real>{.from = sums_of(block, block.first_panel, j, room) + slot,
                                            .ld = cut_.sums_pitch,
                                            .lines = lines,
                                            .columns = columns,
                                            .to = room.row,
                                            .pitch = lines,
                                            .add = false});
        std::byte* const to = memory.target + cut_.target_at(block.image + image, channel,
                                                             of_rows.begin + (block.row + row) * of_rows.step,
                                                             some.begin + block.column * some.step) *
                                                  size_;
        kernels::finish_tile(finish, room.row, lines, columns, lines, to, some.step * pixel);
      }
}

class BlockedCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/blocked/cpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    return blocked_offer(problem, problem, *device, request,
                         may_pair(request) ? BlockedUnit::pairs : BlockedUnit::numbers, nullptr,
                         [=](const BlockedCut& cut) -> std::shared_ptr<const PlanBody> {
                           if (cut.real == DataType::f64) return std::make_shared<Plan<double>>(problem, device, cut);
                           if (cut.terms == kernels::pair_terms)
                             return std::make_shared<Plan<kernels::BfloatPair>>(problem, device, cut);
                           return std::make_shared<Plan<float>>(problem, device, cut);
                         });
  }
};

}  // namespace

const Conv2dSolver& conv2d_blocked_cpu() {
  static const BlockedCpu solver;
  return solver;
}

}  // namespace omniconv::operations
