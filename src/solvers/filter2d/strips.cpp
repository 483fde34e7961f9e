#include "solvers/filter2d/strips.h"

#include <cstring>

#include "core/convert.h"

namespace omniconv::solvers {
namespace {

using devices::KernelArgument;

// A work item holds the window of a row in registers.
constexpr std::int64_t most_window = 48;
// Work items and elements of a launch are counted in 32 bits.
constexpr std::int64_t most_items = std::int64_t{1} << 30;
// A multiprocessor is busy with about so many work items; with fewer, they get fewer rows each.
constexpr std::int64_t items_per_unit = 1024, least_rows = 8;

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& the_task, devices::Device& the_device, const StripTunables& tunables, bool rank_one)
      : tunables_(tunables),
        layout_(strip_layout(the_task, tunables_)),
        rest_(Q(the_task.problem) * the_task.problem.c - layout_.count * tunables_.v),
        busy_items_(items_per_unit * std::max(the_device.info().compute_units, 1)),
        weights_(scaled_strip_weights(the_task, tunables_, rank_one)),
        border_word_(border_word(the_task)) {
    program_ = the_device.build(std::string(kernels::filter2d_pixels()) + std::string(kernels::filter2d_strips()),
                                strip_definitions(the_task, tunables_, rank_one));
    rest_weights_ = upload_weights(the_device, strip_weights(the_task, rank_one));
  }

  std::int64_t workspace_bytes() const override { return 0; }

  double compile_seconds() const override { return program_->compile_seconds(); }

  Event run(devices::Queue& queue, const Filter2dRun& run) const override {
    return run_in_parts_of(most_items / std::max(layout_.count, rest_), queue, run,
                           [&](const Filter2dRun& part) { return run_part(queue, part); });
  }

 private:
  Event run_part(devices::Queue& queue, const Filter2dRun& run) const {
    const std::int64_t item_rows =
        std::clamp(layout_.count * run.output_rows / busy_items_, least_rows, tunables_.rows);
    const std::int64_t items = layout_.count * divide_up(run.output_rows, item_rows);
    const std::int64_t rest_groups = divide_up(rest_ * run.output_rows, tunables_.group * tunables_.rest);
    const std::int64_t groups = rest_groups + divide_up(items, tunables_.group);
    const KernelArgument arguments[] = {run.input.impl().get(),
                                        run.input_offset_bytes,
                                        run.input_stride_bytes,
                                        run.input_first,
                                        run.input_rows,
                                        run.output.impl().get(),
                                        run.output_offset_bytes,
                                        run.output_stride_bytes,
                                        run.output_first,
                                        run.output_rows,
                                        rest_weights_.get(),
                                        static_cast<float>(task.weights.scale),
                                        static_cast<float>(task.weights.bias),
                                        static_cast<float>(task.weights.border_value),
                                        static_cast<std::int32_t>(rest_groups),
                                        static_cast<std::int32_t>(rest_),
                                        std::span<const float>(weights_.values),
                                        weights_.scale,
                                        border_word_,
                                        static_cast<std::int32_t>(layout_.first),
                                        static_cast<std::int32_t>(layout_.count),
                                        static_cast<std::int32_t>(item_rows)};
    return queue.launch(program_, "strips", {{groups * tunables_.group, 1}, {tunables_.group, 1}}, arguments);
  }

  StripTunables tunables_;
  StripLayout layout_;
  std::int64_t rest_, busy_items_;
  StripWeights weights_;
  std::int32_t border_word_;
  std::shared_ptr<devices::Program> program_;
  std::shared_ptr<devices::Buffer> rest_weights_;
};

}  // namespace

std::int32_t border_word(const Filter2dTask& task) {
  const std::int64_t size = size_of(task.problem.input);
  std::byte bytes[4] = {};
  for (std::int64_t i = 0; i < 4; i += size) store_element(task.problem.input, task.weights.border_value, bytes + i);
  std::int32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

bool strips_are_aligned(const Filter2dProblem& problem) {
  return problem.w * problem.c * size_of(problem.input) % 16 == 0 &&
         Q(problem) * problem.c * size_of(problem.output) % 16 == 0;
}

StripTunables fitted(const Filter2dTask& task, StripTunables tunables) {
  const DataType output = task.problem.output;
  if (output != DataType::u8 && output != DataType::u16 && output != DataType::f32) tunables.v = 4;
  if (tunables.v * size_of(task.problem.input) < 4 * tunables.halo) tunables.halo = 1;
  while (tunables.v > 4 && strip_layout(task, tunables).count == 0) tunables.v /= 2, tunables.halo = 1;
  return tunables;
}

std::string strip_refusal(const Filter2dTask& task, const StripTunables& tunables, std::int64_t most) {
  const Filter2dProblem& problem = task.problem;
  if (problem.input == DataType::s16 || problem.input == DataType::s32)
    return fmt::format("strips are of unsigned or floating elements, and the image is {}", name(problem.input));
  if (problem.r > most || problem.s > most)
    return fmt::format("strips keep sums in registers for kernels of at most {0} x {0}, and this one has {1} x {2}",
                       most, problem.r, problem.s);
  if ((problem.s - 1) * problem.c > most_window)
    return fmt::format("strips read at most {} elements beside them, and {} columns of {} channels are more",
                       most_window, problem.s - 1, problem.c);
  const std::int64_t strips = strip_layout(task, tunables).count;
  if (strips == 0) return fmt::format("rows of {} columns are too short for a strip", problem.w);
  if (strips > most_items) return fmt::format("rows of {} columns have too many strips for one launch", problem.w);
  return {};
}

std::unique_ptr<Filter2dPlanBody> make_strip_plan(const Filter2dTask& task, devices::Device& device,
                                                  const StripTunables& tunables, bool rank_one) {
  return std::make_unique<Plan>(task, device, tunables, rank_one);
}

}  // namespace omniconv::solvers
