// Filtering by Fourier transforms on OpenCL and CUDA devices: band after band, the rows that a band reads are put
// together, convolved, and stored; what meets numbers that are not finite, or large enough for transforms to overflow,
// is made by the definition.
#include "core/checked.h"
#include "embedded/fft_bands.kernel.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/fft/fft.h"
#include "operations/filter2d/gpu_text.h"

namespace omniconv::operations {
namespace {

// Of a band: of each the workspace has a word behind the rows, whether the definition makes it.
std::int64_t rows_of_tiles(const FilterBand& band) {
  return divide_up(band.rows, band.convolution.bound.tile.rows);
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, const DevicePointer& device, const FilterBand& band)
      : Filter2dPlanBody(task),
        band_(band),
        convolution_(std::static_pointer_cast<const Conv2dPlanBody>(band.convolution.plan())),
        weights_(upload_weights(*device, task.weights.values)) {
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("BAND_H", band.problem.h), add("BAND_W", band.problem.w), add("BAND_P", band.rows);
    add("TILE_P", band.convolution.bound.tile.rows);
    program_ = device->build(std::string(kernels::filter2d_pixels()) + std::string(fft_bands_kernel), definitions);
    std::vector<double> of_channels;
    for (std::int64_t channel = 0; channel < task.problem.c; ++channel)
      of_channels.insert(of_channels.end(), task.weights.values.begin(), task.weights.values.end());
    const Buffer filters(upload_weights(*device, of_channels));
    spectra_ = band.spectra_of(filters, *convolution_, *device);
  }

  double compile_seconds() const override { return program_->compile_seconds() + convolution_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    if (run.output_rows == 0) return clear(sequence, run);  // a sequence has a step
    for (std::int64_t done = 0; done < run.output_rows; done += band_.rows) {
      const std::int64_t rows = std::min(band_.rows, run.output_rows - done);
      clear(sequence, run);
      gather(sequence, run, done, rows);
      convolution_->append(sequence, Conv2dRun{.x = {run.workspace, band_.input_at()},
                                               .w = {spectra_},
                                               .y = {run.workspace, band_.output_at()},
                                               .workspace = run.workspace});
      finish(sequence, run, done, rows);
    }
  }

 private:
  void clear(devices::Sequence& sequence, const Filter2dRun& run) const {
    const devices::KernelArgument arguments[] = {run.workspace.impl().get(), band_.notes_at() / 4};
    sequence.launch(program_, "clear_rows", grid_for(rows_of_tiles(band_), 1), arguments);
  }
  void gather(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
    const Weights& weights = task().weights;
    const devices::Buffer* const workspace = run.workspace.impl().get();
    const devices::KernelArgument arguments[] = {run.input.impl().get(),
                                                 run.input_offset_bytes,
                                                 run.input_stride_bytes,
                                                 run.input_first,
                                                 run.input_rows,
                                                 workspace,
                                                 band_.input_at() / 4,
                                                 workspace,
                                                 band_.notes_at() / 4,
                                                 run.output_first + done - weights.anchor_y,
                                                 static_cast<std::int32_t>(rows + weights.r - 1),
                                                 static_cast<float>(weights.border_value),
                                                 static_cast<float>(band_.largest)};
    sequence.launch(program_, "gather_rows", grid_for(band_.problem.w * task().problem.c, band_.problem.h), arguments);
  }
  void finish(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
    const Weights& weights = task().weights;
    const devices::Buffer* const workspace = run.workspace.impl().get();
    const devices::KernelArgument arguments[] = {workspace,
                                                 band_.input_at() / 4,
                                                 band_.output_at() / 4,
                                                 workspace,
                                                 band_.notes_at() / 4,
                                                 weights_.get(),
                                                 run.output.impl().get(),
                                                 run.output_offset_bytes + done * run.output_stride_bytes,
                                                 run.output_stride_bytes,
                                                 static_cast<float>(weights.scale),
                                                 static_cast<float>(weights.bias)};
    sequence.launch(program_, "finish_rows", grid_for(Q(task().problem) * task().problem.c, rows), arguments);
  }

  FilterBand band_;
  std::shared_ptr<const Conv2dPlanBody> convolution_;
  Buffer spectra_;
  std::shared_ptr<devices::Buffer> weights_;
  std::shared_ptr<devices::Program> program_;
};

class FftGpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/fft/gpu.1"; }
  std::span<const Tunable> tunables() const override { return conv2d_fft_gpu().tunables(); }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    constexpr std::int64_t enough = std::int64_t{1} << 24, most_rows = most_group_rows / 2;
    const auto answer = cut_bands(task, device, request, conv2d_fft_gpu(), enough, most_rows);
    if (const auto* const reason = std::get_if<std::string>(&answer)) return *reason;
    const auto& band = std::get<FilterBand>(answer);
    const std::int64_t bytes = band.workspace_bytes();
    if (const std::int64_t most = device->info().max_buffer_bytes; bytes > most)
      return fmt::format("takes {} bytes of workspace, and a buffer has {} at most", bytes, most);
    // Four ways through memory, of rows that are put together and stored.
    const double of_element = device->info().is_gpu ? 16 * byte_cost(*device) : 200;
    return offer_of(task, {.operations = of_element + band.operations(task.problem),
                           .bound = band.bound(task.problem),
                           .keeps_bits = false,
                           .workspace_bytes = bytes,
                           .tuning = band.convolution.tuning,
                           .plan = [=] { return std::make_shared<Plan>(task, device, band); }});
  }
};

}  // namespace

const Filter2dSolver& fft_gpu() {
  static const FftGpu solver;
  return solver;
}

}  // namespace omniconv::operations
