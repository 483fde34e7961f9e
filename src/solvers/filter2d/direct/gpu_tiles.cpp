// Direct filtering by large kernels on OpenCL and CUDA devices: rows of the input go through local memory in fp32, and
// a work item has the sums of 8 elements of 8 output rows, so that what it loads serves many multiply-adds.
#include "embedded/tiles.kernel.h"
#include "solvers/filter2d/candidates.h"
#include "solvers/filter2d/cost.h"
#include "solvers/filter2d/direct/direct.h"
#include "solvers/filter2d/strips.h"

namespace omniconv::solvers {
namespace {

constexpr std::int64_t group = 128, tile_rows = 8, elements_of_an_item = 8;
constexpr std::int64_t tile_width = group * elements_of_an_item;
// A window of four taps is held in registers.
constexpr std::int64_t most_channels = 8;
constexpr std::int64_t no_workspace = 0;

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
  Plan(const Filter2dTask& the_task, devices::Device& the_device)
      : columns_(divide_up(Q(the_task.problem) * the_task.problem.c, tile_width)), border_word_(border_word(the_task)) {
    std::vector<devices::Definition> definitions = pixel_definitions(the_task);
    definitions.push_back({"V", "8"});
    definitions.push_back({"GROUP", std::to_string(group)});
    definitions.push_back({"TILE_ROWS", std::to_string(tile_rows)});
    program_ = the_device.build(std::string(kernels::filter2d_pixels()) + std::string(kernels::filter2d_words()) +
                                    std::string(kernels::filter2d_stage()) + std::string(tiles_kernel),
                                definitions);
    weights_ = upload_weights(the_device, padded_weights(the_task.weights));
  }

  std::int64_t workspace_bytes() const override { return no_workspace; }

  double compile_seconds() const override { return program_->compile_seconds(); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    constexpr std::int64_t most_groups = std::int64_t{1} << 30;
    return run_in_parts_of(most_groups / columns_ * tile_rows, queue, run,
                           [&](const Filter2dRun& part) { return run_part(queue, part); });
  }

 private:
  Event run_part(devices::Queue& queue, const Filter2dRun& run) const {
    const auto arguments =
        image_arguments(run, weights_.get(), static_cast<float>(task.weights.scale),
                        static_cast<float>(task.weights.bias), border_word_, static_cast<std::int32_t>(columns_));
    const std::int64_t groups = columns_ * divide_up(run.output_rows, tile_rows);
    return queue.launch(program_, "tiles", {{groups * group, 1}, {group, 1}}, arguments);
  }

  std::int64_t columns_;
  std::int32_t border_word_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> weights_;
};

class Solver final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/direct/gpu-tiles.1"; }
  std::string refusal(const Filter2dTask& task, const devices::Device& device) const override {
    if (const std::string reason = gpu_refusal(task, device); !reason.empty()) return reason;
    if (const std::string reason = direct_refusal(task); !reason.empty()) return reason;
    if (task.weights.form == WeightForm::equal)
      return "equal weights are sums of pixels, and tiles chain multiply-adds";
    const Filter2dProblem& problem = task.problem;
    if (problem.c > most_channels)
      return fmt::format("the taps of at most {} channels stay in registers, and there are {}", most_channels,
                         problem.c);
    return local_memory_refusal(device, local_bytes(problem));
  }
  ErrorBound bound(const Filter2dTask& task) const override { return direct_bound(task); }
  double operations(const Filter2dTask& task, const devices::Device& device) const override {
    if (!device.info().is_gpu)
      return cpu_strip_factor * (gpu_pixel_operations + gpu_tap_operations * direct_operations(task));
    return tile_pixel_operations + tile_tap_operations * direct_operations(task);
  }
  std::int64_t workspace_bytes(const Filter2dTask&, const devices::Device&) const override { return no_workspace; }
  std::unique_ptr<Filter2dPlanBody> plan(const Filter2dTask& task,
                                         const std::shared_ptr<devices::Device>& device) const override {
    return std::make_unique<Plan>(task, *device);
  }
};

}  // namespace

const Filter2dSolver& direct_gpu_tiles() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
