// Groups of one channel and one filter: a tile's spectrum never leaves a thread's scratch.
#include <algorithm>

#include "core/checked.h"
#include "operations/conv2d/fft/memory.h"
#include "operations/conv2d/fft/plans.h"
#include "operations/conv2d/fft/products.h"

namespace omniconv::operations {
namespace {

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
    sequence.call(devices::HostTask([self = shared_from_this(), this, run] {
      if (shape_.of_filter)
        to_filter(Memory(g_, cut_, run));
      else
        filter(Memory(g_, cut_, run));
    }));
  }
  void append_prepare(devices::Sequence& sequence, std::size_t, const Operand& from, const Operand& to) const override {
    sequence.call(devices::HostTask([self = shared_from_this(), this, from, to] {
      const auto threads = device_->allocate(cut_.threads * cut_.scratch * static_cast<std::int64_t>(sizeof(Real)));
      transform_filters(Memory(from, to, *threads), 0, cut_.panels);
    }));
  }

 private:
  using Memory = FftMemory<Real>;

  void filter(const Memory& memory) const;
  void transform_filters(const Memory& memory, std::int64_t first, std::int64_t panels) const;
  void filter_tiles(const Memory& memory, std::int64_t first_panel, std::int64_t panels) const;
  void to_filter(const Memory& memory) const;

  Real* scratch(const Memory& memory, int slot) const { return memory.scratch + slot * cut_.scratch; }
  std::int64_t spectrum() const { return shape_.bins * cut_.point; }

  DevicePointer device_;
  devices::CpuDevice& cpu_;
  Conv2dShape g_;
  FftBlocking cut_;
  const FftShape& shape_ = cut_.shape;
  FftTransforms<Real> transforms_;
};

template <typename Real>
void Plan<Real>::filter(const Memory& memory) const {
  for (std::int64_t first = 0; first < cut_.panels; first += cut_.block_panels) {
    const std::int64_t panels = std::min(cut_.block_panels, cut_.panels - first);
    if (!cut_.prepared) transform_filters(memory, first, panels);
    filter_tiles(memory, first, panels);
  }
}

template <typename Real>
void Plan<Real>::transform_filters(const Memory& memory, std::int64_t first, std::int64_t panels) const {
  cpu_.parallel_for(panels, [&](std::int64_t i, int slot) {
    FftSource<Real> taps = read_filters<Real>(g_, memory.w, false, 0, 0, 0, cut_.targets_of(first + i));
    for (std::int64_t lane = 0; lane < taps.count; ++lane)
      taps.from[static_cast<std::size_t>(lane)] = memory.w + g_.w_at((first + i) * cut_.lanes + lane, 0, 0, 0);
    transforms_.forward(taps, !shape_.turned, memory.filters + i * spectrum(), {shape_.side * cut_.point, cut_.point},
                        scratch(memory, slot));
  });
}

template <typename Real>
void Plan<Real>::filter_tiles(const Memory& memory, std::int64_t first_panel, std::int64_t panels) const {
  const bool to_data = problem().pass == Pass::backward_data, of_tiles = cut_.input_lanes == FftLanes::tiles;
  const FftImages<const Real> source = Memory::read(to_data ? memory.y : memory.x);
  const FftImages<Real>& target = to_data ? memory.x : memory.y;
  const FftFinish<Real> finish{memory.bias, problem().accumulate, problem().relu};
  const FftWindow window = source_window(shape_);
  const std::int64_t lanes = cut_.lanes, first_channel = first_panel * lanes,
                     channels = std::min(panels * lanes, shape_.groups - first_channel),
                     of_channel = divide_up(shape_.tiles, lanes);
  const auto convolve = [&](const FftSource<Real>& from, const FftTarget<Real>& to, std::int64_t panel,
                            std::int64_t lane, Real* here) {
    transforms_.forward(from, false, here, transforms_.scratch, here);
    scale_fft(FftScaling<Real>{.values = here,
                               .factors = memory.filters + (cut_.prepared ? first_panel + panel : panel) * spectrum(),
                               .columns = shape_.columns,
                               .bins = shape_.side,
                               .value_column = transforms_.scratch.column,
                               .factor_column = shape_.side * cut_.point,
                               .lane = lane});
    transforms_.inverse(here, transforms_.scratch, to, here);
  };
  if (of_tiles) {
    cpu_.parallel_for(channels * of_channel, [&](std::int64_t i, int slot) {
      const std::int64_t channel = i / of_channel, first = i % of_channel * lanes,
                         count = std::min(lanes, shape_.tiles - first);
      convolve(read_tiles(shape_, source, window, first_channel + channel, first, count),
               write_tiles(shape_, target, finish, first_channel + channel, first, count), channel / lanes,
               channel % lanes, scratch(memory, slot));
    });
    return;
  }
  cpu_.parallel_for(panels * shape_.tiles, [&](std::int64_t i, int slot) {
    const std::int64_t panel = i / shape_.tiles, tile = i % shape_.tiles, channel = (first_panel + panel) * lanes,
                       count = cut_.targets_of(first_panel + panel);
    convolve(read_channels(shape_, source, window, tile, channel, count),
             write_channels(shape_, target, finish, tile, channel, count), panel, -1, scratch(memory, slot));
  });
}

template <typename Real>
void Plan<Real>::to_filter(const Memory& memory) const {
  cpu_.parallel_for(cut_.panels, [&](std::int64_t panel, int slot) {
    Real* const of_x = scratch(memory, slot);
    Real* const of_y = of_x + transforms_.scratch_elements;
    Real* const sums = of_y + transforms_.scratch_elements;
    const std::int64_t channel = panel * cut_.lanes, count = cut_.targets_of(panel);
    std::fill_n(sums, shape_.columns * transforms_.scratch.column, Real{0});
    for (std::int64_t tile = 0; tile < shape_.tiles; ++tile) {
      transforms_.forward(read_channels(shape_, Memory::read(memory.x), source_window(shape_), tile, channel, count),
                          shape_.turned, of_x, transforms_.scratch, of_x);
      transforms_.forward(read_channels(shape_, Memory::read(memory.y), target_window(shape_), tile, channel, count),
                          !shape_.turned, of_y, transforms_.scratch, of_y);
      add_fft(FftAddition<Real>{.sums = sums,
                                .values = of_x,
                                .factors = of_y,
                                .columns = shape_.columns,
                                .bins = shape_.side,
                                .column_pitch = transforms_.scratch.column});
    }
    FftTarget<Real> target = write_taps<Real>(g_, shape_, problem().accumulate, count);
    target.adjacent = false;  // a filter of one channel is a plane in both layouts
    for (std::int64_t lane = 0; lane < count; ++lane)
      target.to[static_cast<std::size_t>(lane)] = memory.w + g_.w_at(channel + lane, 0, 0, 0);
    transforms_.inverse(sums, transforms_.scratch, target, sums);
  });
}

}  // namespace

std::shared_ptr<const PlanBody> fft_depthwise_plan(const Conv2dProblem& problem, const DevicePointer& device,
                                                   const FftBlocking& cut) {
  if (cut.real == DataType::f64) return std::make_shared<Plan<double>>(problem, device, cut);
  return std::make_shared<Plan<float>>(problem, device, cut);
}

}  // namespace omniconv::operations
