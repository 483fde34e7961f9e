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
      const Memory memory(g_, cut_, run);
      if (!shape_.of_filter)
        filter(memory);
      else if (cut_.input_lanes == FftLanes::tiles)
        to_filter_by_tiles(memory);
      else
        to_filter_by_channels(memory);
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
  void to_filter_by_channels(const Memory& memory) const;
  void to_filter_by_tiles(const Memory& memory) const;
  void add_products(const FftSource<Real>& x, const FftSource<Real>& y, Real* here, Real* sums) const;
  void store_gradient(const Memory& memory, std::int64_t channel, std::int64_t count, Real* sums) const;

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

// Sums of a vector of channels, tile after tile.
template <typename Real>
void Plan<Real>::to_filter_by_channels(const Memory& memory) const {
  cpu_.parallel_for(cut_.panels, [&](std::int64_t panel, int slot) {
    Real* const of_tiles = memory.scratch + 3 * slot * cut_.scratch;
    Real* const sums = of_tiles + 2 * cut_.scratch;
    const std::int64_t channel = panel * cut_.lanes, count = cut_.targets_of(panel);
    std::fill_n(sums, cut_.scratch, Real{0});
    for (std::int64_t tile = 0; tile < shape_.tiles; ++tile)
      add_products(read_channels(shape_, Memory::read(memory.x), source_window(shape_), tile, channel, count),
                   read_channels(shape_, Memory::read(memory.y), target_window(shape_), tile, channel, count), of_tiles,
                   sums);
    store_gradient(memory, channel, count, sums);
  });
}

// Sums of a vector of tiles of one channel, in parts; then of the parts and of the lanes.
template <typename Real>
void Plan<Real>::to_filter_by_tiles(const Memory& memory) const {
  const std::int64_t vectors = divide_up(shape_.tiles, cut_.lanes), parts = cut_.parts;
  Real* const all_sums = memory.scratch + 2 * cut_.threads * cut_.scratch;
  // Lanes beyond the last tile add nothing: they begin below the image.
  const auto read = [&](const FftImages<Real>& images, const FftWindow& window, std::int64_t channel,
                        std::int64_t vector) {
    const std::int64_t first = vector * cut_.lanes, count = std::min(cut_.lanes, shape_.tiles - first);
    FftSource<Real> source = read_tiles(shape_, Memory::read(images), window, channel, first, count);
    for (std::int64_t lane = count; lane < cut_.lanes; ++lane)
      read_lane(source, static_cast<std::size_t>(lane), source.from[0], {0, images.h, 0}, {0, 0, 0, 0});
    source.count = cut_.lanes;
    return source;
  };
  cpu_.parallel_for(shape_.groups * parts, [&](std::int64_t i, int slot) {
    const std::int64_t channel = i / parts, part = i % parts;
    Real* const sums = all_sums + i * cut_.scratch;
    std::fill_n(sums, cut_.scratch, Real{0});
    for (std::int64_t vector = part * vectors / parts; vector < (part + 1) * vectors / parts; ++vector)
      add_products(read(memory.x, source_window(shape_), channel, vector),
                   read(memory.y, target_window(shape_), channel, vector), memory.scratch + 2 * slot * cut_.scratch,
                   sums);
  });
  cpu_.parallel_for(shape_.groups, [&](std::int64_t channel, int) {
    Real* const sums = all_sums + channel * parts * cut_.scratch;
    for (std::int64_t at = 0; at < cut_.scratch; at += cut_.lanes) {
      for (std::int64_t lane = 0; lane < cut_.lanes; ++lane)
        for (std::int64_t part = 1; part < parts; ++part) sums[at + lane] += sums[part * cut_.scratch + at + lane];
      for (std::int64_t lane = 1; lane < cut_.lanes; ++lane) sums[at] += sums[at + lane];
    }
    store_gradient(memory, channel, 1, sums);
  });
}

// What a tile of x and one of dy, which `here` has room for, add to the sums.
template <typename Real>
void Plan<Real>::add_products(const FftSource<Real>& x, const FftSource<Real>& y, Real* here, Real* sums) const {
  Real* const of_y = here + cut_.scratch;
  transforms_.forward(x, shape_.turned, here, transforms_.scratch, here);
  transforms_.forward(y, !shape_.turned, of_y, transforms_.scratch, of_y);
  add_fft(FftAddition<Real>{.sums = sums,
                            .values = here,
                            .factors = of_y,
                            .columns = shape_.columns,
                            .bins = shape_.side,
                            .column_pitch = transforms_.scratch.column});
}

template <typename Real>
void Plan<Real>::store_gradient(const Memory& memory, std::int64_t channel, std::int64_t count, Real* sums) const {
  FftTarget<Real> target = write_taps<Real>(g_, shape_, problem().accumulate, count);
  target.adjacent = false;  // a filter of one channel is a plane in both layouts
  for (std::int64_t lane = 0; lane < count; ++lane)
    target.to[static_cast<std::size_t>(lane)] = memory.w + g_.w_at(channel + lane, 0, 0, 0);
  transforms_.inverse(sums, transforms_.scratch, target, sums);
}

}  // namespace

std::shared_ptr<const PlanBody> fft_depthwise_plan(const Conv2dProblem& problem, const DevicePointer& device,
                                                   const FftBlocking& cut) {
  if (cut.real == DataType::f64) return std::make_shared<Plan<double>>(problem, device, cut);
  return std::make_shared<Plan<float>>(problem, device, cut);
}

}  // namespace omniconv::operations
