// Box filters of integer images on OpenCL and CUDA devices: running sums down columns and along rows.
#include <array>

#include "core/convert.h"
#include "embedded/box.kernel.h"
#include "operations/filter2d/box/box.h"
#include "operations/filter2d/candidates.h"
#include "operations/filter2d/gpu_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 256, span = 4 * group, run_pixels = 31;

// Rows whose sums are in local memory together: fewer of results that take more of it.
std::int64_t rows_at_once(const Filter2dProblem& problem) {
  return size_of(problem.output) == 1 ? 8 : 4;
}

// Pixels' runs of a row that a group makes: what its columns reach, which begin at a multiple of four.
std::int64_t runs_of(const Filter2dProblem& problem) {
  const std::int64_t reach = (problem.s - 1) * problem.c;
  return std::max<std::int64_t>(span - 3 - reach, 0) / (run_pixels * problem.c);
}
std::int64_t width_of(const Filter2dProblem& problem) {
  return runs_of(problem) * run_pixels * problem.c;
}
std::int64_t local_bytes(const Filter2dProblem& problem) {
  return rows_at_once(problem) * (4 * span + (width_of(problem) * size_of(problem.output) + 7) / 4 * 4);
}

class Plan final : public Filter2dPlanBody {
 public:
  Plan(const Filter2dTask& task, devices::Device& device)
      : Filter2dPlanBody(task), columns_(divide_up(Q(task.problem) * task.problem.c, width_of(task.problem))) {
    std::vector<devices::Definition> definitions = pixel_definitions(task);
    const auto add = [&](const char* symbol, std::int64_t value) {
      definitions.push_back({symbol, std::to_string(value)});
    };
    add("GROUP", group), add("RUN", run_pixels), add("AT_ONCE", rows_at_once(task.problem));
    program_ = device.build(std::string(kernels::filter2d_pixels()) + std::string(box_kernel), definitions);
    constexpr std::int64_t of_unit = 4;
    resident_ = device.info().is_gpu ? of_unit * device.info().compute_units : 0;
  }

  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Filter2dRun& run) const override {
    // Bands much taller than the rows that each adds up before its first.
    const std::int64_t lead = task().problem.r - 1, together = rows_at_once(task().problem),
                       rows = std::max<std::int64_t>(run.output_rows, 1);
    const std::int64_t band = round_up(rows_of_bands(rows, static_cast<double>(columns_), resident_, lead, 4 * together,
                                                     std::max<std::int64_t>(256, 4 * lead)),
                                       together);
    in_launches(run, band, [&](const Filter2dRun& part) { append_part(sequence, part, band); });
  }

 private:
  void append_part(devices::Sequence& sequence, const Filter2dRun& run, std::int64_t band) const {
    if (run.output_rows == 0) return;
    const Weights& weights = task().weights;
    const auto arguments =
        image_arguments(run, static_cast<float>(weights.values.front()), static_cast<float>(weights.scale),
                        static_cast<float>(weights.bias), static_cast<std::int32_t>(weights.border_value), band);
    sequence.launch(program_, "box", {{columns_ * group, divide_up(run.output_rows, band)}, {group, 1}}, arguments);
  }

  std::int64_t columns_;       // of tiles
  std::int64_t resident_ = 0;  // groups at once; 0: not known
  std::shared_ptr<devices::Program> program_;
};

class BoxGpu final : public Filter2dSolver {
 public:
  std::string_view id() const override { return "filter2d/box/gpu.1"; }

  Answer offer(const Filter2dTask& task, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = gpu_refusal(task, *device); !reason.empty()) return reason;
    if (std::string reason = box_refusal(task); !reason.empty()) return reason;
    const Filter2dProblem& problem = task.problem;
    if (problem.input != DataType::u8 && problem.input != DataType::u16 && problem.input != DataType::s16)
      return "running sums are of 8- and 16-bit integers";
    const double largest = std::max(highest_value(problem.input), -lowest_value(problem.input));
    if (static_cast<double>(problem.r) * static_cast<double>(problem.s) * largest > 0x7FFFFFFF)
      return "a window's sum may pass 32 bits";
    if (runs_of(problem) == 0 || problem.w > 0x7FFFFFFF / problem.c)
      return fmt::format("rows of {} taps of {} channels are wider than a group's {} columns allow", problem.s,
                         problem.c, span);
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    if (std::string reason = local_memory_refusal(*device, local_bytes(problem)); !reason.empty()) return reason;
    // Columns at both sides are read by neighbours, too.
    const double shared = static_cast<double>(span) / static_cast<double>(width_of(problem));
    constexpr double of_element = 34, of_processor = 300;
    return offer_of(task, {.operations = (device->info().is_gpu ? of_element : of_processor) * shared,
                           .bound = box_bound(task),
                           .plan = [=] { return std::make_shared<Plan>(task, *device); }});
  }
};

}  // namespace

const Filter2dSolver& box_gpu() {
  static const BoxGpu solver;
  return solver;
}

}  // namespace omniconv::operations
