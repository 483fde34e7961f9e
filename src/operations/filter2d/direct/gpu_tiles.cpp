// Direct filtering by large kernels on OpenCL and CUDA devices: rows of the input go through local memory in fp32, and
// a work item has the sums of 8 elements of 8 output rows, so that what it loads serves many multiply-adds.
#include <algorithm>

#include "embedded/tiles.kernel.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/cost.h"
#include "operations/filter2d/direct/direct.h"
#include "operations/filter2d/strips.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 128, tile_rows = 8, elements_of_an_item = 8;
constexpr std::int64_t tile_width = group * elements_of_an_item;
// A window of four taps is held in registers.
constexpr std::int64_t most_channels = 8;

std::int64_t local_bytes(const Filter2dProblem& problem) {
  return 2 * 4 * (tile_width + round_up(problem.s, 4) * problem.c + 16);
}

// Rows filled up with zeros to whole vectors of four.
std::vector<double> padded_weights(const Weights& weights) {
  const std::int64_t pitch = round_up(weights.s, 4);
  std::vector<double> padded(static_cast<std::size_t>(weights.r * pitch));
  for (std::int64_t r = 0; r < weights.r; ++r)
    std::copy_n(weights.values.begin() + r * weights.s, weights.s, padded.begin() + r * pitch);
  return padded;
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, devices::Device& device)
      : Filter2dPlanBody(task),
        columns_(divide_up(Q(task.problem) * task.problem.c, tile_width)),
        border_word_(border_word(task)) {
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    definitions.push_back({"V", "8"});
    definitions.push_back({"GROUP", std::to_string(group)});
    definitions.push_back({"TILE_ROWS", std::to_string(tile_rows)});
    program_ = device.build(std::string(kernels::filter2d_pixels()) + std::string(kernels::filter2d_words()) +
                                std::string(kernels::filter2d_stage()) + std::string(tiles_kernel),
                            definitions);
    weights_ = upload_weights(device, padded_weights(task.weights));
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    constexpr std::int64_t most_groups = std::int64_t{1} << 30;
    in_parts_of(most_groups / columns_ * tile_rows, run, [&](const Filter2dRun& part) { append_part(sequence, part); });
  }

 private:
  void append_part(devices::Sequence& sequence, const Filter2dRun& run) const {
    const auto arguments =
        image_arguments(run, weights_.get(), static_cast<float>(task().weights.scale),
                        static_cast<float>(task().weights.bias), border_word_, static_cast<std::int32_t>(columns_));
    const std::int64_t groups = columns_ * divide_up(run.output_rows, tile_rows);
    sequence.launch(program_, "tiles", {{groups * group, 1}, {group, 1}}, arguments);
  }

  std::int64_t columns_;
  std::int32_t border_word_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> weights_;
};

class DirectGpuTiles final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/gpu-tiles.1"; }
  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = direct_refusal(task); !reason.empty()) return reason;
    if (task.weights.form == WeightForm::equal)
      return "equal weights are sums of pixels, and tiles chain multiply-adds";
    const Filter2dProblem& problem = task.problem;
    if (problem.c > most_channels)
      return fmt::format("the taps of at most {} channels stay in registers, and there are {}", most_channels,
                         problem.c);
    if (std::string reason = local_memory_refusal(*device, local_bytes(problem)); !reason.empty()) return reason;
    const double taps = direct_operations(task);
    // Of small images no compute unit has more than one group, whose taps follow each other.
    const double of_group =
        tile_tap_cycles * taps * 128 * device->info().compute_units / std::max(output_elements(problem), 1.0);
    return offer_of(task, {.operations = device->info().is_gpu
                                             ? tile_pixel_operations + tile_tap_operations * taps + of_group
                                             : cpu_strip_factor * (gpu_pixel_operations + gpu_tap_operations * taps),
                           .bound = direct_bound(task),
                           .plan = [=] { return std::make_shared<Plan>(task, *device); }});
  }
};

}  // namespace

const Filter2dSolver& direct_gpu_tiles() {
  static const DirectGpuTiles solver;
  return solver;
}

}  // namespace omniconv::operations
