// Convolution by its definition on the processor's matrix unit: pixels are rows of its tiles, filters their columns.
#include <algorithm>
#include <cstring>

#include "core/checked.h"
#include "devices/cpu/cpu_device.h"
#include "operations/conv2d/blocked/blocking.h"
#include "operations/conv2d/blocked/filters.h"
#include "operations/conv2d/blocked/joined_taps.h"
#include "operations/conv2d/conv2d.h"
#include "operations/host_operand.h"
#include "vector/matrix/gemm_tiles.h"
#include "vector/matrix/matrix_tiles.h"
#include "vector/matrix/turn.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice, kernels::BfloatPair;

struct Memory {
  const std::byte *source, *w, *bias;
  std::byte* target;
  BfloatPair *rooms, *filters;
};

// Of a channel, that are stored at a time: whole vectors, and few lines beside them.
constexpr std::int64_t stored_pixels = 128;

// What a thread works in.
struct Room {
  BfloatPair* pixels;
  float *sums, *row;
};

class Plan final : public Conv2dPlanBody {
 public:
  // The cut is of the joined problem, where taps are joined.
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const BlockedCut& cut)
      : Conv2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<CpuDevice&>(*device)),
        cut_(cut),
        g_(problem),
        joined_(problem, cut_),
        offsets_(cut.taps.size()) {
    for (std::size_t i = 0; i < offsets_.size(); ++i)
      for (const std::int64_t pixel : cut_.taps[i].offsets) offsets_[i].push_back(pixel * cut_.terms * cut_.depth);
  }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, from, to] {
      pack_filters(host(from), reinterpret_cast<BfloatPair*>(host(to)));
    }));
  }

 private:
  void execute(const Conv2dRun& run) const;
  void pack_filters(const std::byte* w, BfloatPair* to) const;
  void compute(const Memory& memory, const BlockedBlock& block, const Room& room) const;
  void copy_source(const Memory& memory, const BlockedBlock& block, std::int64_t chunk, const Room& room) const;
  void copy_row(const std::byte* from, std::int64_t channels, const BlockedRow& part, const Room& room,
                BfloatPair* to) const;
  void multiply(const Memory& memory, const BlockedBlock& block, std::int64_t chunk, std::int64_t panel,
                const Room& room) const;
  void fetch_outputs(const Memory& memory, const BlockedBlock& block, std::int64_t panel) const;
  void finish(const Memory& memory, const BlockedBlock& block, std::int64_t panel, const Room& room) const;
  void finish_planes(const kernels::GemmFinish& finish, const float* sums, std::int64_t rows, std::int64_t lines,
                     std::int64_t pixels, std::byte* to) const;
  void finish_row(const kernels::GemmFinish& finish, const BlockedBlock& block, std::int64_t panel, std::int64_t slot,
                  const Room& room, std::byte* to) const;

  std::size_t column_classes() const { return cut_.along.classes.size(); }
  // From one depth of channels of a block's copy to the next.
  std::int64_t depth_pitch() const { return cut_.images * cut_.plane * cut_.depth; }
  // Sums of a panel and a class of columns, the panel's rows side by side.
  float* sums_of(const BlockedBlock& block, std::int64_t panel, std::size_t column_class, const Room& room) const {
    const std::int64_t kept = cut_.finishes_panels() ? 1 : cut_.range_panels,
                       at = cut_.finishes_panels() ? 0 : panel - block.first_panel;
    return room.sums + (static_cast<std::int64_t>(column_class) * kept + at) * cut_.panel_rows * cut_.sums_pitch;
  }

  DevicePointer device_;
  CpuDevice& cpu_;
  BlockedCut cut_;
  Conv2dShape g_;
  JoinedTaps joined_;
  std::vector<std::vector<std::int64_t>> offsets_;              // of taps, in numbers of a copy
  static constexpr std::int64_t size_ = sizeof(std::uint16_t);  // of a stored element
};

void Plan::execute(const Conv2dRun& run) const {
  auto* const workspace = reinterpret_cast<BfloatPair*>(host({run.workspace, 0}));
  const std::int64_t of_thread = cut_.plane_elements() + cut_.sum_elements() + cut_.row_elements();
  const Memory memory{
      .source = host(cut_.forward ? run.x : run.y),
      .w = host(run.w),
      .bias = problem().bias ? host(run.bias) : nullptr,
      .target = host(cut_.forward ? run.y : run.x),
      .rooms = workspace,
      .filters = cut_.prepared ? reinterpret_cast<BfloatPair*>(host(run.w)) : workspace + cut_.threads * of_thread};
  if (!cut_.prepared) pack_filters(memory.w, memory.filters);
  cpu_.parallel_for(cut_.items(), [&](std::int64_t i, int slot) {
    BfloatPair* const room = memory.rooms + slot * of_thread;
    auto* const sums = reinterpret_cast<float*>(room + cut_.plane_elements());
    compute(memory, cut_.block(i), {room, sums, sums + cut_.sum_elements()});
  });
}

void Plan::pack_filters(const std::byte* w, BfloatPair* to) const {
  const auto pairs = static_cast<std::int64_t>(cut_.taps.size());
  const std::int64_t depths = cut_.source / cut_.depth, of_group = pairs * cut_.filters.panels * depths;
  cpu_.parallel_for(g_.groups * of_group, [&](std::int64_t i, int) {
    const std::int64_t group = i / of_group, panel = i / depths % cut_.filters.panels, first = i % depths * cut_.depth;
    if (joined_.serves()) return joined_.pack(w, group, panel, first, to + group * cut_.filter_elements());
    const auto pair = static_cast<std::size_t>(i % of_group / depths / cut_.filters.panels);
    pack_blocked_filters(cut_, problem().type, w, group, cut_.taps[pair], panel, first, cut_.depth,
                         to + group * cut_.filter_elements());
  });
}

void Plan::compute(const Memory& memory, const BlockedBlock& block, const Room& room) const {
  for (std::int64_t chunk = 0; chunk < cut_.channels.panels; ++chunk) {
    copy_source(memory, block, chunk, room);
    for (std::int64_t panel = block.first_panel; panel < block.first_panel + block.panels; ++panel) {
      const bool is_last = chunk + 1 == cut_.channels.panels;
      if (is_last && !g_.nhwc) fetch_outputs(memory, block, panel);
      multiply(memory, block, chunk, panel, room);
      if (is_last) finish(memory, block, panel, room);
    }
  }
}

// Channels of y lie on pages of their own, which no hardware fetches ahead of the stores.
void Plan::fetch_outputs(const Memory& memory, const BlockedBlock& block, std::int64_t panel) const {
  constexpr std::int64_t line = 64;
  const BlockedClass &of_rows = cut_.down.classes[block.row_class], &of_columns = cut_.along.classes.front();
  const std::int64_t first = block.group * cut_.target + cut_.filters.start(panel),
                     bytes =
                         cut_.target_at(0, 0, (block.rows - 1) * of_rows.step, block.columns * of_columns.step) * size_;
  for (std::int64_t image = 0; image < block.images; ++image)
    for (std::int64_t channel = first; channel < first + cut_.filters.count(panel); ++channel) {
      const std::byte* const from =
          memory.target + cut_.target_at(block.image + image, channel, of_rows.begin + block.row * of_rows.step,
                                         block.column * of_columns.step) *
                              size_;
      for (std::int64_t at = 0; at < bytes; at += line) __builtin_prefetch(from + at, 1);
    }
}

// A chunk's channels of what the block reads, a depth of them side by side, with zeros where nothing is.
void Plan::copy_source(const Memory& memory, const BlockedBlock& block, std::int64_t chunk, const Room& room) const {
  const BlockedAxis &down = cut_.down, &along = cut_.along;
  for (std::int64_t c = 0; c < cut_.channels.count(chunk); c += cut_.depth) {
    const std::int64_t first = cut_.channels.start(chunk) + c, channels = cut_.channels_in(first, cut_.depth),
                       channel = block.group * cut_.source_channels() + cut_.terms * first;
    for (std::size_t j = 0; j < along.phases.size(); ++j) {
      const BlockedRow part = cut_.row_part((block.column + along.low) * along.unit + along.phases[j]);
      for (std::int64_t image = 0; image < block.images; ++image)
        for (std::size_t i = 0; i < down.phases.size(); ++i) {
          BfloatPair* const plane =
              room.pixels + c / cut_.depth * depth_pitch() +
              (image * cut_.plane + static_cast<std::int64_t>(i * along.phases.size() + j) * cut_.phase_plane) *
                  cut_.depth;
          for (std::int64_t row = 0; row < block.rows + down.reach(); ++row) {
            const std::int64_t h = (block.row + down.low + row) * down.unit + down.phases[i];
            const bool is_there = h >= 0 && h < down.extent;
            if (joined_.serves() && is_there) {
              joined_.copy(memory.source + g_.x_at(block.image + image, block.group * g_.c_group, h, 0) * size_, first,
                           block.column, room.row, plane + row * cut_.pitch * cut_.depth);
              continue;
            }
            copy_row(
                is_there ? memory.source + cut_.source_at(block.image + image, channel, h, part.from) * size_ : nullptr,
                channels, is_there ? part : cut_.nowhere(), room, plane + row * cut_.pitch * cut_.depth);
          }
        }
    }
  }
}

void Plan::copy_row(const std::byte* from, std::int64_t channels, const BlockedRow& part, const Room& room,
                    BfloatPair* to) const {
  const std::int64_t depth = cut_.depth, unit = cut_.along.unit, count = part.end - part.begin;
  std::fill_n(to, part.begin * depth, BfloatPair{});
  std::fill_n(to + part.end * depth, (cut_.width - part.end) * depth, BfloatPair{});
  if (count == 0) return;
  to += part.begin * depth;
  if (g_.nhwc) {
    const std::int64_t pixel_bytes = unit * g_.groups * cut_.source_channels() * size_;
    for (std::int64_t i = 0; i < count; ++i, to += depth, from += pixel_bytes) {
      if (channels < cut_.terms * depth) std::fill_n(to, depth, BfloatPair{});
      std::memcpy(to, from, static_cast<std::size_t>(channels * size_));
    }
    return;
  }
  const std::int64_t plane = cut_.source_at(0, 1, 0, 0);
  const auto* first = reinterpret_cast<const std::uint16_t*>(from);
  auto* const pairs = reinterpret_cast<BfloatPair*>(room.row);
  BfloatPair* line = pairs;
  for (std::int64_t c = 0; c < cut_.terms * depth; c += cut_.terms, line += count, first += cut_.terms * plane) {
    const std::uint16_t* const second = first + plane;
    if (c >= channels)
      std::fill_n(line, count, BfloatPair{});
    else if (c + 1 == channels)
      for (std::int64_t i = 0; i < count; ++i) line[i] = {first[i * unit], 0};
    else
      kernels::pair_lines(first, second, unit, count, line);
  }
  kernels::turn(kernels::Turned<BfloatPair>{
      .from = pairs, .ld = count, .lines = depth, .columns = count, .to = to, .pitch = depth, .add = false});
}

void Plan::multiply(const Memory& memory, const BlockedBlock& block, std::int64_t chunk, std::int64_t panel,
                    const Room& room) const {
  const std::int64_t rows = cut_.filters.count(panel), depth = cut_.depth;
  for (std::size_t j = 0; j < column_classes(); ++j) {
    const std::size_t pair = block.row_class * column_classes() + j;
    const BlockedTaps& taps = cut_.taps[pair];
    const auto count = static_cast<std::int64_t>(taps.taps.size());
    const std::int64_t columns = cut_.columns_of(block, cut_.along.classes[j]);
    float* const sums = sums_of(block, panel, j, room);
    if (columns == 0) continue;
    if (count == 0) {
      std::fill_n(sums, rows * cut_.sums_pitch, 0.0F);
      continue;
    }
    // Under nchw taps of a pair of channels follow each other, else pairs of a tap.
    const std::int64_t of_tap = (g_.nhwc ? depth : 1) * rows, of_step = (g_.nhwc ? 1 : count) * rows;
    kernels::MatrixTiles tiles{
        .a = nullptr,
        .b = memory.filters + block.group * cut_.filter_elements() + taps.filters_before +
             panel * cut_.panel_pitch() * count + cut_.channels.start(chunk) * count * rows,
        .taps = offsets_[pair].data(),
        .tap_count = count,
        .blocks = cut_.channels.count(chunk) / depth,
        .depth = depth,
        .a_block = cut_.terms * depth_pitch(),
        .a_row = cut_.terms * depth,
        .b_block = depth * count * rows,
        .b_tap = of_tap,
        .b_step = of_step,
        .rows = cut_.flattened ? (block.rows - 1) * cut_.pitch + columns : columns,
        .columns = rows,
        .sums = nullptr,
        .ld = rows,
        .add = chunk > 0,
    };
    for (std::int64_t image = 0; image < block.images; ++image)
      for (std::int64_t run = 0; run < (cut_.flattened ? 1 : block.rows); ++run) {
        tiles.a = reinterpret_cast<const std::uint16_t*>(room.pixels + (image * cut_.plane + run * cut_.pitch) * depth);
        tiles.sums = sums + (image * cut_.slots() + run * cut_.pitch) * rows;
        kernels::multiply_tiles(tiles);
      }
  }
}

void Plan::finish(const Memory& memory, const BlockedBlock& block, std::int64_t panel, const Room& room) const {
  const DataType type = problem().type;
  const BlockedClass& of_rows = cut_.down.classes[block.row_class];
  const std::int64_t rows = cut_.filters.count(panel), channel = block.group * cut_.target + cut_.filters.start(panel);
  const std::byte* const bias = memory.bias == nullptr ? nullptr : memory.bias + channel * size_;
  const kernels::GemmFinish finish{.type = type,
                                   .output = type,
                                   .row_bias = g_.nhwc ? nullptr : bias,
                                   .column_bias = g_.nhwc ? bias : nullptr,
                                   .accumulate = problem().accumulate,
                                   .relu = problem().relu};
  // Rows of y that follow each other are stored together.
  const std::int64_t step = cut_.along.classes.front().step;
  const bool joins_rows = !g_.nhwc && step == 1 && of_rows.step == 1 && block.columns == cut_.along.count();
  const std::int64_t together = joins_rows ? std::max<std::int64_t>(stored_pixels / block.columns, 1) : 1;
  for (std::int64_t image = 0; image < block.images; ++image)
    for (std::int64_t row = 0; row < block.rows; row += together) {
      const std::int64_t slot = image * cut_.slots() + row * cut_.pitch,
                         h = of_rows.begin + (block.row + row) * of_rows.step;
      const auto target = [&](std::int64_t w) {
        return memory.target + cut_.target_at(block.image + image, channel, h, w) * size_;
      };
      if (!g_.nhwc && step > 1) {
        finish_row(finish, block, panel, slot, room, target(block.column * step));
        continue;
      }
      for (std::size_t j = 0; j < column_classes(); ++j) {
        const BlockedClass& some = cut_.along.classes[j];
        const std::int64_t columns = cut_.columns_of(block, some);
        const float* const sums = sums_of(block, panel, j, room) + slot * rows;
        if (columns == 0) continue;
        std::byte* const to = target(some.begin + block.column * some.step);
        if (g_.nhwc)
          kernels::finish_tile(finish, sums, rows, columns, rows, to, some.step * cut_.target_at(0, 0, 0, 1));
        else
          finish_planes(finish, sums, rows, std::min(together, block.rows - row), columns, to);
      }
    }
}

// Pixels of some lines, whose channels lie apart.
void Plan::finish_planes(const kernels::GemmFinish& finish, const float* sums, std::int64_t rows, std::int64_t lines,
                         std::int64_t pixels, std::byte* to) const {
  alignas(64) float turned[kernels::matrix_tile * stored_pixels];
  const auto turn = [&](std::int64_t first, std::int64_t count, std::int64_t at) {
    kernels::turn(kernels::Turned<float>{.from = sums + first * rows,
                                         .ld = rows,
                                         .lines = count,
                                         .columns = rows,
                                         .to = turned + at,
                                         .pitch = stored_pixels,
                                         .add = false});
  };
  const auto store = [&](std::int64_t first, std::int64_t count) {
    kernels::finish_tile(finish, turned, stored_pixels, rows, count, to + first * size_, cut_.target_at(0, 1, 0, 0));
  };
  if (lines > 1) {
    for (std::int64_t line = 0; line < lines; ++line) turn(line * cut_.pitch, pixels, line * pixels);
    return store(0, lines * pixels);
  }
  for (std::int64_t first = 0; first < pixels; first += stored_pixels) {
    const std::int64_t count = std::min(stored_pixels, pixels - first);
    turn(first, count, 0), store(first, count);
  }
}

// A row whose pixels are of several classes in turn, and none of those that no tap meets.
void Plan::finish_row(const kernels::GemmFinish& finish, const BlockedBlock& block, std::int64_t panel,
                      std::int64_t slot, const Room& room, std::byte* to) const {
  const std::int64_t rows = cut_.filters.count(panel), plane = cut_.target_at(0, 1, 0, 0),
                     step = cut_.along.classes.front().step,
                     length = std::min(block.columns * step, cut_.target_at(0, 0, 1, 0) - block.column * step);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < column_classes(); ++j) {
      const BlockedClass& some = cut_.along.classes[j];
      const float* const from = sums_of(block, panel, j, room) + slot * rows + i;
      for (std::int64_t q = 0; q < cut_.columns_of(block, some); ++q) room.row[q * step + some.begin] = from[q * rows];
    }
    kernels::finish_tile(finish, room.row, length, 1, length, to + i * plane * size_, plane);
  }
}

class BlockedTilesCpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/blocked/cpu-tiles.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (device->kind() != devices::DeviceKind::cpu) return "this variant runs on the CPU";
    const char* const refusal = tiles_refusal(problem, request);
    const bool joins = refusal == nullptr && JoinedTaps::serves(problem);
    return blocked_offer(problem, joins ? JoinedTaps::joined(problem) : problem, *device, request, BlockedUnit::matrix,
                         refusal, [=](const BlockedCut& cut) { return std::make_shared<Plan>(problem, device, cut); });
  }
};

}  // namespace

const Conv2dSolver& conv2d_blocked_tiles_cpu() {
  static const BlockedTilesCpu solver;
  return solver;
}

}  // namespace omniconv::operations
