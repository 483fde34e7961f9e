// To the filter: at every bin a product of matrices, gradients by inputs (or the other way around), summed over all
// tiles.
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

 private:
  using Memory = FftMemory<Real>;

  void execute(const Conv2dRun& run) const;
  FftSource<Real> read(const Memory& memory, bool of_x, std::int64_t tile, std::int64_t channel,
                       std::int64_t count) const;
  void transform(const Memory& memory, const Block& tiles, const Block& panels) const;
  void multiply(const Memory& memory, const Block& tiles, const Block& panels) const;
  void store(const Memory& memory, const Block& panels) const;

  Real* scratch(const Memory& memory, int slot) const { return memory.scratch + slot * cut_.scratch; }
  FftPitches pitches(std::int64_t bin) const { return {shape_.side * bin, bin}; }

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
  for (std::int64_t panel = 0; panel < cut_.panels; panel += cut_.block_panels) {
    const Block panels{panel, std::min(cut_.block_panels, cut_.panels - panel)};
    for (std::int64_t tile = 0; tile < shape_.tiles; tile += cut_.block_tiles) {
      const Block tiles{tile, std::min(cut_.block_tiles, shape_.tiles - tile)};
      transform(memory, tiles, panels);
      multiply(memory, tiles, panels);
    }
    store(memory, panels);
  }
}

// Under `flip` the conjugate is x's, and taps come turned.
template <typename Real>
FftSource<Real> Plan<Real>::read(const Memory& memory, bool of_x, std::int64_t tile, std::int64_t channel,
                                 std::int64_t count) const {
  return read_channels(shape_, Memory::read(of_x ? memory.x : memory.y),
                       of_x ? source_window(shape_) : target_window(shape_), tile, channel, count);
}

// All lanes of the products, and the rows of a block.
template <typename Real>
void Plan<Real>::transform(const Memory& memory, const Block& tiles, const Block& panels) const {
  const std::int64_t of_lanes = cut_.source_panels * shape_.groups, all = of_lanes + panels.count;
  cpu_.parallel_for(tiles.count * all, [&](std::int64_t i, int slot) {
    const std::int64_t tile = i / all, at = i % all, panel = panels.first + at - of_lanes;
    const bool is_lanes = at < of_lanes, of_x = is_lanes != cut_.swapped;
    const FftSource<Real> source =
        is_lanes ? read(memory, of_x, tiles.first + tile, cut_.first_source(at), cut_.sources_of(at))
                 : read(memory, of_x, tiles.first + tile, cut_.first_target(panel), cut_.targets_of(panel));
    Real* const to = is_lanes ? memory.inputs + (at * cut_.block_tiles + tile) * cut_.point
                              : memory.filters + ((panel - panels.first) * cut_.block_tiles + tile) * cut_.point;
    transforms_.forward(source, of_x == shape_.turned, to, pitches(is_lanes ? cut_.input_bin() : cut_.filter_bin()),
                        scratch(memory, slot));
  });
}

template <typename Real>
void Plan<Real>::multiply(const Memory& memory, const Block& tiles, const Block& panels) const {
  const std::int64_t point = cut_.point, pitch = cut_.block_tiles * point;
  cpu_.parallel_for(shape_.bins, [&](std::int64_t bin, int) {
    for (std::int64_t i = 0; i < panels.count; ++i) {
      const std::int64_t panel = panels.first + i, group = panel / cut_.target_panels;
      multiply_fft(
          FftProduct<Real>{.rows = memory.filters + bin * cut_.filter_bin() + i * pitch,
                           .row_count = cut_.targets_of(panel),
                           .row_pitch = 1,
                           .row_step = point,
                           .run = tiles.count,
                           .columns = memory.inputs + bin * cut_.input_bin() + group * cut_.source_panels * pitch,
                           .panels = cut_.source_panels,
                           .panel_pitch = pitch,
                           .steps = tiles.count,
                           .sums = memory.sums + bin * cut_.sum_bin() + i * cut_.lanes * cut_.source_panels * point,
                           .sum_row = cut_.source_panels * point,
                           .sum_panel = point,
                           .add = tiles.first > 0});
    }
  });
}

template <typename Real>
void Plan<Real>::store(const Memory& memory, const Block& panels) const {
  cpu_.parallel_for(panels.count * cut_.lanes * cut_.source_panels, [&](std::int64_t i, int slot) {
    const std::int64_t row = i / cut_.source_panels, panel = panels.first + row / cut_.lanes,
                       group = panel / cut_.target_panels,
                       lanes = group * cut_.source_panels + i % cut_.source_panels;  // the vector
    if (row % cut_.lanes >= cut_.targets_of(panel)) return;
    FftTarget<Real> target = write_taps<Real>(g_, shape_, problem().accumulate, cut_.sources_of(lanes));
    if (cut_.swapped) target.adjacent = false;  // neighbouring filters lie apart
    for (std::int64_t lane = 0; lane < target.count; ++lane) {
      const std::int64_t of_row = cut_.first_target(panel) + row % cut_.lanes,
                         of_lane = cut_.first_source(lanes) + lane, k = cut_.swapped ? of_lane : of_row,
                         c = cut_.swapped ? of_row : of_lane;
      target.to[static_cast<std::size_t>(lane)] = memory.w + g_.w_at(k, c % g_.c_group, 0, 0);
    }
    transforms_.inverse(memory.sums + i * cut_.point, pitches(cut_.sum_bin()), target, scratch(memory, slot));
  });
}

}  // namespace

std::shared_ptr<const PlanBody> fft_filter_plan(const Conv2dProblem& problem, const DevicePointer& device,
                                                const FftBlocking& cut) {
  if (cut.real == DataType::f64) return std::make_shared<Plan<double>>(problem, device, cut);
  return std::make_shared<Plan<float>>(problem, device, cut);
}

}  // namespace omniconv::operations
