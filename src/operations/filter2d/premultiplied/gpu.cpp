// Premultiplied alpha on OpenCL and CUDA devices: one launch for general weights, chains along rows and down columns
// for rank one and equal weights, another solver's plan and a copy of opacity where the weights sum to zero.
#include <algorithm>
#include <array>
#include <cmath>

#include "embedded/premultiplied.kernel.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/gpu_text.h"
#include "operations/filter2d/premultiplied/premultiplied.h"

namespace omniconv::operations {
namespace {

using devices::KernelArgument;

constexpr std::int64_t most_channels_at_once = 4;  // of a pixel, by one work item

constexpr std::int64_t rows_per_item = 4;   // of pixels that a work item makes one after the other
constexpr std::int64_t unrolled_taps = 32;  // chains of at most so many taps are unrolled

// What a work item makes of general weights in the interior: more of pixels that are words, and most where a row's sums
// leave their registers before those of the last row enter.
struct TapsTile {
  std::int64_t rows = rows_per_item, across = 1;  // pixels
};
TapsTile tile_of(const Filter2dTask& task) {
  const Filter2dProblem& problem = task.problem;
  if (problem.c != 4 || problem.input != DataType::u8 || problem.output != DataType::u8) return {};
  return {.rows = problem.r * problem.s <= unrolled_taps ? 8 : rows_per_item, .across = 2};
}

std::int64_t items_of_a_pixel(const Filter2dTask& task) {
  return task.problem.c <= most_channels_at_once ? 1 : task.problem.c;
}

// Whether quotients may share a reciprocal (exact_division.kernel): no number that is divided or comes out comes near
// the ends of fp32's range.
//
// Pixels being integers, no opacity and no product of colour and opacity but 0 is less than the opacity that is stored
// as 1, and all are multiples of its last place. Rounding to nearest keeps multiples of a power of two, so that sums
// are multiples of the products of that place and those of the least weights.
bool quotients_are_normal(const Filter2dTask& task, const devices::Device& device) {
  const Weights& weights = task.weights;
  if (!is_integer(task.problem.input) || weights.alpha_rule != AlphaRule::premultiplied) return false;
  const auto place = [](double value) { return value * 0x1p-24; };  // the last one's value or less
  const auto least = [](const std::vector<double>& values) {
    double result = INFINITY;
    for (const double value : values)
      if (value != 0) result = std::min(result, std::fabs(value));
    return result;
  };
  double smallest = place(weights.opacity_unit);
  switch (weights.form) {
    case WeightForm::equal: smallest *= std::fabs(weights.values.front()) / 2; break;
    case WeightForm::rank_one: smallest *= place(least(weights.row)) * place(least(weights.column)); break;
    case WeightForm::general: smallest *= place(least(weights.values)); break;
  }
  double magnitudes = 0;
  for (const double weight : weights.values) magnitudes += std::fabs(weight);
  const double pixel = std::max(highest_value(task.problem.input), -lowest_value(task.problem.input));
  const double largest = 2 * magnitudes * pixel * pixel * weights.opacity_unit;  // 2: for rounding
  const double sum = weights.opaque_sum;
  // Remainders are multiples of 2^-48 of what is divided, and subnormal numbers below 2^-126.
  return smallest >= (device.facts().has_denormals ? 0x1p-96 : 0x1p-78) &&
         std::ranges::all_of(std::array{sum, largest, smallest / sum / 2, 2 * largest / sum,
                                        smallest / largest * sum / 4, largest / smallest * sum * 4},
                             [](double value) { return value >= 0x1p-120 && value <= 0x1p120; });
}

std::shared_ptr<devices::Program> build(const Filter2dTask& task, devices::Device& device, const TapsTile& tile = {}) {
  std::vector<devices::Definition> definitions = pixel_definitions(task);
  const auto add = [&](const char* symbol, std::int64_t value) {
    definitions.push_back({symbol, std::to_string(value)});
  };
  add("ALPHA", task.problem.alpha_channel);
  add("KEEPS_OPACITY", task.weights.keeps_opacity ? 1 : 0);
  add("CHANNELS", task.problem.c / items_of_a_pixel(task));
  add("ROWS", rows_per_item);
  add("PIXEL_ROWS", tile.rows), add("ACROSS", tile.across);
  add("UNROLLED_TAPS", unrolled_taps);
  add("QUOTIENTS_ARE_NORMAL", quotients_are_normal(task, device) ? 1 : 0);
  return device.build(std::string(kernels::filter2d_pixels()) + std::string(kernels::exact_division()) +
                          std::string(premultiplied_kernel),
                      definitions);
}

KernelArgument fp32(double value) {
  return static_cast<float>(value);
}

class TapsPlan final : public Filter2dPlanBody {
 public:
  TapsPlan(const Filter2dTask& task, devices::Device& device)
      : Filter2dPlanBody(task),
        tile_(tile_of(task)),
        parts_(row_parts(task, items_of_a_pixel(task), tile_.across)),  // its last group may not be full
        program_(build(task, device, tile_)),
        weights_(upload_weights(device, task.weights.values)) {}

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    in_launches(run, tile_.rows, [&](const Filter2dRun& part) { append_part(sequence, part); });
  }

 private:
  void append_part(devices::Sequence& sequence, const Filter2dRun& run) const {
    const Weights& weights = task().weights;
    const auto arguments = image_arguments(run, weights_.get(), fp32(weights.border_value), fp32(weights.opacity_unit),
                                           fp32(weights.opaque_sum), fp32(weights.opaque_output), fp32(weights.scale),
                                           fp32(weights.bias), parts_.interior, parts_.rest);
    if (parts_.interior > 0)
      sequence.launch(program_, "taps_interior",
                      grid_for(parts_.interior / tile_.across, divide_up(run.output_rows, tile_.rows)),
                      std::span(arguments).first(arguments.size() - 1));
    if (parts_.rest > 0)
      sequence.launch(program_, "taps_rest", grid_for(parts_.rest * divide_up(run.output_rows, rows_per_item), 1),
                      arguments);
  }

  TapsTile tile_;
  RowParts parts_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> weights_;
};

class RowsFirstPlan final : public Filter2dPlanBody {
 public:
  RowsFirstPlan(const Filter2dTask& task, devices::Device& device)
      : Filter2dPlanBody(task),
        parts_(row_parts(task, items_of_a_pixel(task))),
        chunk_(chunk_for(task)),
        program_(build(task, device)) {
    const Weights& weights = task.weights;
    const bool equal = weights.form == WeightForm::equal;
    const auto ones = [](std::int64_t count) { return std::vector<double>(static_cast<std::size_t>(count), 1.0); };
    row_weights_ = upload_weights(device, equal ? ones(weights.s) : weights.row);
    column_weights_ = upload_weights(device, equal ? ones(weights.r) : weights.column);
    weight_ = equal ? weights.values.front() : 1;
  }

  std::int64_t strip_workspace_bytes(std::int64_t output_rows, std::int64_t) const override {
    return chunk_.workspace_bytes_for(output_rows);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    for (std::int64_t done = 0; done < run.output_rows || done == 0; done += chunk_.rows) {
      const std::int64_t rows = std::min(chunk_.rows, run.output_rows - done);
      filter_rows(sequence, run, run.output_first + done, rows + task().problem.r - 1);
      filter_columns(sequence, run, done, rows);
    }
  }

 private:
  // Fills workspace rows [0, rows), the first of which is the topmost that output row p reads.
  void filter_rows(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t p, std::int64_t rows) const {
    const KernelArgument arguments[] = {run.input.impl().get(),
                                        run.input_offset_bytes,
                                        run.input_stride_bytes,
                                        run.input_first,
                                        run.input_rows,
                                        run.workspace.impl().get(),
                                        p - task().weights.anchor_y,
                                        row_weights_.get(),
                                        fp32(task().weights.border_value),
                                        fp32(task().weights.opacity_unit),
                                        parts_.interior,
                                        parts_.rest};
    launch_parts(sequence, program_, {"rows_interior", "rows_rest"}, parts_, rows, arguments);
  }

  // From the workspace to rows [done, done + rows) of the run's output.
  void filter_columns(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t done, std::int64_t rows) const {
    const Weights& weights = task().weights;
    const KernelArgument arguments[] = {run.workspace.impl().get(),
                                        run.output.impl().get(),
                                        run.output_offset_bytes + done * run.output_stride_bytes,
                                        run.output_stride_bytes,
                                        rows,
                                        column_weights_.get(),
                                        fp32(weight_),
                                        fp32(weights.opaque_sum),
                                        fp32(weights.opaque_output),
                                        fp32(weights.scale),
                                        fp32(weights.bias)};
    sequence.launch(program_, "columns", grid_for(parts_.interior + parts_.rest, divide_up(rows, rows_per_item)),
                    arguments);
  }

  RowParts parts_;
  Chunk chunk_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> row_weights_, column_weights_;
  double weight_ = 1;
};

// The task with all channels alike, and the solver that serves it.
Filter2dTask plain_task(Filter2dTask task) {
  task.problem.alpha_channel = -1;
  task.weights.alpha_rule = AlphaRule::none;
  return task;
}
Answer plain_offer(const Filter2dTask& plain, const DevicePointer& device) {
  Answer rows_first = separable_gpu().offer(plain, device, {});
  return rows_first.offer() != nullptr ? rows_first : direct_gpu().offer(plain, device, {});
}

class CopyPlan final : public Filter2dPlanBody {
 public:
  CopyPlan(const Filter2dTask& task, devices::Device& device, const Offer& colors)
      : Filter2dPlanBody(task),
        colors_(std::static_pointer_cast<const Filter2dPlanBody>(colors.plan())),
        program_(build(task, device)) {}

  std::int64_t strip_workspace_bytes(std::int64_t output_rows, std::int64_t whole) const override {
    return colors_->strip_workspace_bytes(output_rows, whole);
  }
  double compile_seconds() const override { return program_->compile_seconds() + colors_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    colors_->append(sequence, run);
    in_launches(run, 1, [&](const Filter2dRun& part) { copy_opacity(sequence, part); });
  }

 private:
  void copy_opacity(devices::Sequence& sequence, const Filter2dRun& run) const {
    const Filter2dProblem& problem = task().problem;
    const Weights& weights = task().weights;
    const bool valid = problem.border.mode == BorderMode::valid;
    const KernelArgument arguments[] = {
        run.input.impl().get(),    run.input_offset_bytes,    run.input_stride_bytes,     run.input_first,
        run.output.impl().get(),   run.output_offset_bytes,   run.output_stride_bytes,    run.output_first,
        valid ? problem.r / 2 : 0, valid ? problem.s / 2 : 0, fp32(weights.opacity_unit), fp32(weights.opaque_output)};
    sequence.launch(program_, "copy_opacity", grid_for(Q(problem), run.output_rows), arguments);
  }

  std::shared_ptr<const Filter2dPlanBody> colors_;
  std::shared_ptr<devices::Program> program_;
};

class PremultipliedGpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/premultiplied/gpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = premultiplied_refusal(task); !reason.empty()) return reason;
    const bool rows_first = premultiplied_rows_first(task);
    const auto r = static_cast<double>(task.weights.r), s = static_cast<double>(task.weights.s);
    FilterOffer offer{.operations = gpu_pixel_operations + gpu_tap_operations * (rows_first ? r + s : r * s),
                      .bound = premultiplied_bound(task)};
    if (task.weights.alpha_rule == AlphaRule::copied) {
      const Answer colors = plain_offer(plain_task(task), device);
      if (colors.offer() == nullptr) return colors.refusal();
      offer.workspace_bytes = colors.offer()->workspace_bytes;
      offer.plan = [=] { return std::make_shared<CopyPlan>(task, *device, *colors.offer()); };
    } else if (rows_first) {
      if (std::string reason = chunk_refusal(task, *device); !reason.empty()) return reason;
      offer.workspace_bytes = chunk_for(task).workspace_bytes;
      offer.plan = [=] { return std::make_shared<RowsFirstPlan>(task, *device); };
    } else {
      offer.plan = [=] { return std::make_shared<TapsPlan>(task, *device); };
    }
    return offer_of(task, std::move(offer));
  }
};

}  // namespace

const Filter2dSolver& premultiplied_gpu() {
  static const PremultipliedGpu solver;
  return solver;
}

}  // namespace omniconv::operations
