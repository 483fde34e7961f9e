// Filtering by Fourier transforms on the CPU: band after band, the rows that a band reads are put together, as the
// border says, and convolved; what is not finite among them, or large enough for transforms to overflow, is filtered by
// the definition.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/border_map.h"
#include "core/checked.h"
#include "core/convert.h"
#include "core/row_window.h"
#include "devices/cpu/cpu_device.h"
#include "devices/sequence.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/fft/fft.h"
#include "operations/filter2d/pixel_type.h"

namespace omniconv::operations {
namespace {

using devices::CpuDevice;

template <typename Real>
class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, const DevicePointer& device, const FilterBand& band)
      : Filter2dPlanBody(task),
        device_(device),
        cpu_(dynamic_cast<CpuDevice&>(*device)),
        band_(band),
        convolution_(std::static_pointer_cast<const Conv2dPlanBody>(band.convolution.plan())),
        weights_(task.weights.values.begin(), task.weights.values.end()) {
    const Filter2dProblem& problem = task.problem;
    for (std::int64_t column = 0; column < band.problem.w; ++column)
      columns_.push_back(border_index(problem.border.mode, column - task.weights.anchor_x, problem.w));
    const auto taps = static_cast<std::int64_t>(weights_.size());
    const Buffer filters(device->allocate(problem.c * taps * static_cast<std::int64_t>(sizeof(Real))));
    for (std::int64_t channel = 0; channel < problem.c; ++channel)
      std::copy(weights_.begin(), weights_.end(), reinterpret_cast<Real*>(filters.impl()->host()) + channel * taps);
    spectra_ = band.spectra_of(filters, *convolution_, *device);
  }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    if (run.output_rows == 0) return sequence.call(devices::HostTask([] {}));  // a sequence has a step
    for (std::int64_t done = 0; done < run.output_rows; done += band_.rows) {
      const std::int64_t rows = std::min(band_.rows, run.output_rows - done);
      sequence.call(devices::HostTask([self = shared_from_this(), this, run, done, rows] { read(run, done, rows); }));
      convolution_->append(sequence, Conv2dRun{.x = {run.workspace, band_.input_at()},
                                               .w = {spectra_},
                                               .y = {run.workspace, band_.output_at()},
                                               .workspace = run.workspace});
      sequence.call(devices::HostTask([self = shared_from_this(), this, run, done, rows] { write(run, done, rows); }));
    }
  }

 private:
  template <typename Element>
  static Element* at(const Filter2dRun& run, std::int64_t offset) {
    return reinterpret_cast<Element*>(run.workspace.impl()->host() + offset);
  }
  // A row that is read, of a channel.
  Real* input_row(const Filter2dRun& run, std::int64_t row, std::int64_t channel) const {
    return at<Real>(run, band_.input_at()) + (channel * band_.problem.h + row) * band_.problem.w;
  }

  void read(const Filter2dRun& run, std::int64_t done, std::int64_t rows) const;
  void read_row(const RowWindow& given, std::int64_t y, std::int64_t channel, Real* to) const;
  void write(const Filter2dRun& run, std::int64_t done, std::int64_t rows) const;
  void filter_plainly(const Filter2dRun& run, std::int64_t row, std::int64_t channel, Real* to) const;

  DevicePointer device_;
  CpuDevice& cpu_;
  FilterBand band_;
  std::shared_ptr<const Conv2dPlanBody> convolution_;
  Buffer spectra_;
  std::vector<Real> weights_;
  std::vector<std::int64_t>
      columns_;  // of the image, for each that a row of the output reads; -1: the border's constant
};

// The rows that `rows` of the output read. Those that only missing ones of the band would read are zeros.
template <typename Real>
void Plan<Real>::read(const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
  const Weights& weights = task().weights;
  const RowWindow given{run.input.impl()->host() + run.input_offset_bytes, run.input_stride_bytes, run.input_first,
                        run.input_rows};
  const std::int64_t top = run.output_first + done - weights.anchor_y, needed = rows + weights.r - 1,
                     w = band_.problem.w;
  cpu_.parallel_for(band_.problem.h, [&](std::int64_t i, int) {
    bool is_finite = true;
    for (std::int64_t channel = 0; channel < task().problem.c; ++channel) {
      Real* const to = input_row(run, i, channel);
      if (i >= needed) {
        std::fill_n(to, w, Real{0});
        continue;
      }
      read_row(given, top + i, channel, to);
      const auto largest = static_cast<Real>(band_.largest);
      for (std::int64_t column = 0; column < w; ++column) is_finite &= std::fabs(to[column]) <= largest;
    }
    at<std::uint8_t>(run, band_.notes_at())[i] = is_finite ? 1 : 0;
  });
}

template <typename Real>
void Plan<Real>::read_row(const RowWindow& given, std::int64_t y, std::int64_t channel, Real* to) const {
  const Filter2dProblem& problem = task().problem;
  const auto border = static_cast<Real>(task().weights.border_value);
  const std::int64_t size = size_of(problem.input), step = problem.c * size;  // from pixel to pixel
  const std::int64_t row = given.holds(y) ? y : border_index(problem.border.mode, y, problem.h);
  if (row < 0) {
    std::fill_n(to, band_.problem.w, border);
    return;
  }
  const std::byte* const from = given.data + (row - given.first) * given.stride_bytes + channel * size;
  // The image's own columns stand side by side.
  const std::int64_t first = task().weights.anchor_x, last = std::min(first + problem.w, band_.problem.w);
  with_pixel_type(problem.input, [&](auto type) {
    const auto pixel = [&](std::int64_t of_image) {
      return static_cast<Real>(load_element(type, from + of_image * step));
    };
    const auto beside = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t column = begin; column < end; ++column) {
        const std::int64_t of_image = columns_[static_cast<std::size_t>(column)];
        to[column] = of_image < 0 ? border : pixel(of_image);
      }
    };
    beside(0, first);
    for (std::int64_t column = first; column < last; ++column) to[column] = pixel(column - first);
    beside(last, band_.problem.w);
  });
}

template <typename Real>
void Plan<Real>::write(const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
  const Weights& weights = task().weights;
  const std::int64_t columns = Q(task().problem), c = task().problem.c, size = size_of(task().problem.output);
  const auto* const finite = at<const std::uint8_t>(run, band_.notes_at());
  const bool all_finite = std::all_of(finite, finite + rows + weights.r - 1, [](std::uint8_t one) { return one != 0; });
  const auto scale = static_cast<Real>(weights.scale), bias = static_cast<Real>(weights.bias);
  cpu_.parallel_for(rows, [&](std::int64_t row, int) {
    std::byte* const to = run.output.impl()->host() + run.output_offset_bytes + (done + row) * run.output_stride_bytes;
    for (std::int64_t channel = 0; channel < c; ++channel) {
      Real* const from = at<Real>(run, band_.output_at()) + (channel * band_.rows + row) * columns;
      if (!all_finite) filter_plainly(run, row, channel, from);
      with_pixel_type(task().problem.output, [&](auto type) {
        for (std::int64_t column = 0; column < columns; ++column)
          store_element(type, std::fma(scale, from[column], bias), to + (column * c + channel) * size);
      });
    }
  });
}

// A row by the definition, each row of the kernel added up by itself.
template <typename Real>
void Plan<Real>::filter_plainly(const Filter2dRun& run, std::int64_t row, std::int64_t channel, Real* to) const {
  const Filter2dProblem& problem = task().problem;
  constexpr std::int64_t at_once = 256;
  const std::int64_t columns = Q(problem);
  for (std::int64_t first = 0; first < columns; first += at_once) {
    const std::int64_t count = std::min(at_once, columns - first);
    Real sums[at_once] = {};
    for (std::int64_t r = 0; r < problem.r; ++r) {
      Real of_row[at_once] = {};
      for (std::int64_t s = 0; s < problem.s; ++s) {
        const Real weight = weights_[static_cast<std::size_t>(r * problem.s + s)];
        const Real* const x = input_row(run, row + r, channel) + first + s;
        for (std::int64_t i = 0; i < count; ++i) of_row[i] += weight * x[i];
      }
      for (std::int64_t i = 0; i < count; ++i) sums[i] += of_row[i];
    }
    std::copy_n(sums, count, to + first);
  }
}

class FftCpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/fft/cpu.1"; }
  std::span<const Tunable> tunables() const override { return conv2d_fft_cpu().tunables(); }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions& request) const override;
};

Answer FftCpu::offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions& request) const {
  if (device->kind() != devices::DeviceKind::cpu) return "runs on the CPU alone";
  constexpr std::int64_t enough = std::int64_t{1} << 20, most_rows = std::numeric_limits<std::int64_t>::max();
  const auto answer = cut_bands(task, device, request, conv2d_fft_cpu(), enough, most_rows);
  if (const auto* const reason = std::get_if<std::string>(&answer)) return *reason;
  const auto& band = std::get<FilterBand>(answer);
  // Of rows that are put together; and taken only where it is predicted to be faster by so much (README.md).
  constexpr double of_element = 12;
  const double margin = band.problem.type == DataType::f64 ? 2 : 1.25;
  return offer_of(task, {.operations = of_element + margin * band.operations(task.problem),
                         .bound = band.bound(task.problem),
                         .keeps_bits = false,
                         .workspace_bytes = band.workspace_bytes(),  // whose notes say whether each row read is finite
                         .tuning = band.convolution.tuning,
                         .plan = [=]() -> std::shared_ptr<const PlanBody> {
                           if (band.problem.type == DataType::f64)
                             return std::make_shared<Plan<double>>(task, device, band);
                           return std::make_shared<Plan<float>>(task, device, band);
                         }});
}

}  // namespace

const Filter2dSolver& fft_cpu() {
  static const FftCpu solver;
  return solver;
}

}  // namespace omniconv::operations
