// Forward and to the data: at every bin a product of matrices, filters by tiles.
#include <algorithm>

#include "core/checked.h"
#include "operations/conv2d/fft/memory.h"
#include "operations/conv2d/fft/plans.h"
#include "operations/conv2d/fft/products.h"

namespace omniconv::operations {
namespace {

// Tiles or panels [first, first + count).
struct Block {
  std::int64_t first, count;
};

template <typename Real>
class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, const DevicePointer& device, const FftBlocking& cut)
      : Conv2dPlanBody(problem),
        device_(device),
        cpu_(dynamic_cast<devices::CpuDevice&>(*device)),
        g_(problem),
        cut_(cut),
        transforms_(fft_transforms(cut, Real{})) {}

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] { execute(run); }));
  }
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, from, to] {
      const auto threads = device_->allocate(cut_.threads * cut_.scratch * static_cast<std::int64_t>(sizeof(Real)));
      transform_filters(Memory(from, to, *threads), {0, cut_.panels});
    }));
  }

 private:
  using Memory = FftMemory<Real>;

  void execute(const Conv2dRun& run) const;
  void transform_filters(const Memory& memory, const Block& panels) const;
  void transform_inputs(const Memory& memory, const Block& tiles) const;
  void multiply(const Memory& memory, const Block& tiles, const Block& panels) const;
  void store_outputs(const Memory& memory, const Block& tiles, const Block& panels) const;

  bool to_data() const { return problem().pass == Pass::backward_data; }
  bool lanes_are_tiles() const { return cut_.input_lanes == FftLanes::tiles; }
  Real* scratch(const Memory& memory, int slot) const { return memory.scratch + slot * cut_.scratch; }
  // Of spectra that lie bin after bin.
  FftPitches pitches(std::int64_t bin) const { return {shape_.side * bin, bin}; }
  // Filters that are kept for all blocks begin with the first panel, others with the block's.
  std::int64_t place_of_panel(const Block& panels, std::int64_t panel) const {
    return cut_.keeps_filters ? panel : panel - panels.first;
  }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Conv2dShape g_;
  FftBlocking cut_;
  const FftShape& shape_ = cut_.shape;
  FftTransforms<Real> transforms_;
};

template <typename Real>
void Plan<Real>::execute(const Conv2dRun& run) const {
  const Memory memory(g_, cut_, run);
  if (cut_.keeps_filters && !cut_.prepared) transform_filters(memory, {0, cut_.panels});
  for (std::int64_t tile = 0; tile < shape_.tiles; tile += cut_.block_tiles) {
    const Block tiles{tile, std::min(cut_.block_tiles, shape_.tiles - tile)};
    transform_inputs(memory, tiles);
    for (std::int64_t panel = 0; panel < cut_.panels; panel += cut_.block_panels) {
      const Block panels{panel, std::min(cut_.block_panels, cut_.panels - panel)};
      if (!cut_.keeps_filters) transform_filters(memory, panels);
      multiply(memory, tiles, panels);
      store_outputs(memory, tiles, panels);
    }
  }
}

template <typename Real>
void Plan<Real>::transform_filters(const Memory& memory, const Block& panels) const {
  cpu_.parallel_for(panels.count * shape_.source, [&](std::int64_t i, int slot) {
    const std::int64_t panel = panels.first + i / shape_.source, source = i % shape_.source;
    transforms_.forward(read_filters<Real>(g_, memory.w, to_data(), panel / cut_.target_panels, source,
                                           panel % cut_.target_panels * cut_.lanes, cut_.targets_of(panel)),
                        !shape_.turned,
                        memory.filters + (place_of_panel(panels, panel) * shape_.source + source) * cut_.point,
                        pitches(cut_.filter_bin()), scratch(memory, slot));
  });
}

template <typename Real>
void Plan<Real>::transform_inputs(const Memory& memory, const Block& tiles) const {
  const FftImages<const Real> images = Memory::read(to_data() ? memory.y : memory.x);
  const FftPitches to = pitches(cut_.input_bin());
  if (lanes_are_tiles()) {
    const std::int64_t channels = shape_.source * shape_.groups;
    cpu_.parallel_for(divide_up(tiles.count, cut_.lanes) * channels, [&](std::int64_t i, int slot) {
      const std::int64_t first = i / channels * cut_.lanes;
      transforms_.forward(read_tiles(shape_, images, source_window(shape_), i % channels, tiles.first + first,
                                     std::min(cut_.lanes, tiles.count - first)),
                          false, memory.inputs + i * cut_.point, to, scratch(memory, slot));
    });
    return;
  }
  const std::int64_t panels = cut_.source_panels * shape_.groups;
  cpu_.parallel_for(tiles.count * panels, [&](std::int64_t i, int slot) {
    transforms_.forward(read_channels(shape_, images, source_window(shape_), tiles.first + i / panels,
                                      cut_.first_source(i % panels), cut_.sources_of(i % panels)),
                        false, memory.inputs + i * cut_.point, to, scratch(memory, slot));
  });
}

template <typename Real>
void Plan<Real>::multiply(const Memory& memory, const Block& tiles, const Block& panels) const {
  const std::int64_t point = cut_.point;
  cpu_.parallel_for(shape_.bins, [&](std::int64_t bin, int) {
    const Real* const inputs = memory.inputs + bin * cut_.input_bin();
    for (std::int64_t i = 0; i < panels.count; ++i) {
      const std::int64_t panel = panels.first + i, group = panel / cut_.target_panels;
      const Real* const filters =
          memory.filters + bin * cut_.filter_bin() + place_of_panel(panels, panel) * shape_.source * point;
      Real* const sums = memory.sums + bin * cut_.sum_bin();
      if (lanes_are_tiles())
        multiply_fft(FftProduct<Real>{.rows = filters,
                                      .row_count = cut_.targets_of(panel),
                                      .row_pitch = 1,
                                      .row_step = point,
                                      .run = shape_.source,
                                      .columns = inputs + group * shape_.source * point,
                                      .panels = divide_up(tiles.count, cut_.lanes),
                                      .panel_pitch = shape_.groups * shape_.source * point,
                                      .steps = shape_.source,
                                      .sums = sums + i * cut_.lanes * cut_.tile_panels() * point,
                                      .sum_row = cut_.tile_panels() * point,
                                      .sum_panel = point});
      else
        multiply_fft(FftProduct<Real>{.rows = inputs + group * cut_.source_panels * point,
                                      .row_count = tiles.count,
                                      .row_pitch = shape_.groups * cut_.source_panels * point,
                                      .row_step = 1,
                                      .run = cut_.lanes,
                                      .run_pitch = point,
                                      .columns = filters,
                                      .panels = 1,
                                      .steps = shape_.source,
                                      .sums = sums + i * point,
                                      .sum_row = cut_.block_panels * point});
    }
  });
}

template <typename Real>
void Plan<Real>::store_outputs(const Memory& memory, const Block& tiles, const Block& panels) const {
  const FftImages<Real>& images = to_data() ? memory.x : memory.y;
  const FftFinish<Real> finish{memory.bias, problem().accumulate, problem().relu};
  const FftPitches from = pitches(cut_.sum_bin());
  if (lanes_are_tiles()) {
    const std::int64_t tile_panels = divide_up(tiles.count, cut_.lanes);
    cpu_.parallel_for(panels.count * cut_.lanes * tile_panels, [&](std::int64_t i, int slot) {
      const std::int64_t row = i / tile_panels, panel = panels.first + row / cut_.lanes, first = i % tile_panels;
      if (row % cut_.lanes >= cut_.targets_of(panel)) return;
      transforms_.inverse(
          memory.sums + (row * cut_.tile_panels() + first) * cut_.point, from,
          write_tiles(shape_, images, finish, cut_.first_target(panel) + row % cut_.lanes,
                      tiles.first + first * cut_.lanes, std::min(cut_.lanes, tiles.count - first * cut_.lanes)),
          scratch(memory, slot));
    });
    return;
  }
  cpu_.parallel_for(tiles.count * panels.count, [&](std::int64_t i, int slot) {
    const std::int64_t tile = i / panels.count, panel = panels.first + i % panels.count;
    transforms_.inverse(
        memory.sums + (tile * cut_.block_panels + i % panels.count) * cut_.point, from,
        write_channels(shape_, images, finish, tiles.first + tile, cut_.first_target(panel), cut_.targets_of(panel)),
        scratch(memory, slot));
  });
}

}  // namespace

std::shared_ptr<const PlanBody> fft_products_plan(const Conv2dProblem& problem, const DevicePointer& device,
                                                  const FftBlocking& cut) {
  if (cut.real == DataType::f64) return std::make_shared<Plan<double>>(problem, device, cut);
  return std::make_shared<Plan<float>>(problem, device, cut);
}

}  // namespace omniconv::operations
