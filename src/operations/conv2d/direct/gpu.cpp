// Direct convolution on OpenCL and CUDA devices.
#include <algorithm>
#include <cmath>

#include "embedded/direct_conv2d.kernel.h"
#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 64, places = 2, most_channels = 8, most_inputs = 4;

// Of the powers of two the largest that is needed.
std::int64_t at_most(std::int64_t most, std::int64_t channels) {
  std::int64_t size = 1;
  while (size < most && size < channels) size *= 2;
  return size;
}

struct Tiling {
  std::int64_t channels, inputs, groups;
};
Tiling tiling_for(const Conv2dProblem& problem) {
  const Conv2dShape g(problem);
  const bool filter = problem.pass == Pass::backward_filter, forward = problem.pass == Pass::forward;
  const std::int64_t of_group = problem.pass == Pass::backward_data ? g.c_group : g.k_group;
  Tiling tiling{at_most(filter ? 4 : most_channels, of_group), at_most(most_inputs, g.c_group), 0};
  const std::int64_t blocks = g.groups * divide_up(of_group, tiling.channels);
  if (filter)
    tiling.groups = blocks * divide_up(g.c_group, tiling.inputs) * g.r * g.s;
  else
    tiling.groups =
        checked_multiply(blocks, divide_up(forward ? g.n * g.p * g.q : g.n * g.h * g.w, places * group), "the groups");
  return tiling;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const Tiling& tiling)
      : Conv2dPlanBody(problem), tiling_(tiling) {
    std::vector<devices::Definition> definitions = conv2d_definitions(problem);
    definitions.push_back({"CHANNELS", std::to_string(tiling_.channels)});
    definitions.push_back({"INPUTS", std::to_string(tiling_.inputs)});
    definitions.push_back({"PLACES", std::to_string(places)});
    definitions.push_back({"GROUP", std::to_string(group)});
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::conv2d_shape()) +
                                std::string(direct_conv2d_kernel),
                            definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    switch (problem().pass) {
      case Pass::forward: return launch(sequence, "forward", run.x, run.w, run.y, problem().bias ? run.bias : run.w);
      case Pass::backward_data: return launch(sequence, "backward_data", run.y, run.w, run.x, run.w);
      case Pass::backward_filter: return launch(sequence, "backward_filter", run.x, run.y, run.w, run.x);
    }
  }

 private:
  // Without a bias some buffer stands in its place, which is not read.
  void launch(devices::Sequence& sequence, const char* kernel, const Operand& a, const Operand& b,
              const Operand& output, const Operand& bias) const {
    const std::int64_t size = size_of(problem().type);
    launch_groups(tiling_.groups, [&](std::int64_t first, std::int64_t groups) {
      const devices::KernelArgument arguments[] = {
          a.buffer.impl().get(),    a.offset_bytes / size,      b.buffer.impl().get(),
          b.offset_bytes / size,    output.buffer.impl().get(), output.offset_bytes / size,
          bias.buffer.impl().get(), bias.offset_bytes / size,   first};
      sequence.launch(program_, kernel, {{groups * group, 1}, {group, 1}}, arguments, {.overlaps = true});
    });
  }

  Tiling tiling_;
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/direct/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, group); !reason.empty()) return reason;
    const Tiling tiling = tiling_for(problem);
    const double sum = longest_sum(problem);
    return Offer{
        .cost = {cost(problem, tiling, *device)},
        // Of the filter, work items take the pixels in turn, and their sums are added.
        .bound = conv2d_bound(problem, problem.pass == Pass::backward_filter ? sum / group + 1 + group : sum),
        .plan = [=] { return std::make_shared<Plan>(problem, *device, tiling); },
    };
  }

 private:
  static double cost(const Conv2dProblem& problem, const Tiling& tiling, const devices::Device& device) {
    const bool is_gpu = device.info().is_gpu, of_filter = problem.pass == Pass::backward_filter;
    // Instructions of a step for its multiply-adds: these, and a load with its widening and address for each operand.
    const double steps = static_cast<double>(tiling.channels * (of_filter ? tiling.inputs : places));
    constexpr double load = 4;
    const double loads = load * static_cast<double>(tiling.channels) +
                         (of_filter ? load * static_cast<double>(tiling.inputs)
                                    : pixel_load(problem, is_gpu) * static_cast<double>(places));
    const double idle = is_gpu  // compute units without a group
                            ? std::max(1.0, 8.0 * device.info().compute_units / static_cast<double>(tiling.groups))
                            : 1;
    // Where a pixel lies and whether it is there: for each tap, and all channels of a work item at once.
    const Conv2dShape g(problem);
    const double place = problem.pass == Pass::forward ? 54 : problem.pass == Pass::backward_data ? 55 : 88;
    const std::int64_t shared = tiling.channels * (problem.pass == Pass::forward         ? g.c_group
                                                   : problem.pass == Pass::backward_data ? g.k_group
                                                                                         : tiling.inputs);
    constexpr double of_loop = 1.18;  // as on an H200
    const double of_step = of_loop * (steps + loads) / steps + place / static_cast<double>(shared);
    const double compute = idle * multiply_adds(problem) * of_step;
    if (!is_gpu) return launch_cost(device) + compute;
    return launch_cost(device) + std::max({byte_cost(device) * least_bytes(problem), compute + storing_cost(problem),
                                           waiting_cost(problem, tiling, device)});
  }

  // Neighbouring work items read neighbouring pixels: under nhwc these lie apart, in so many lines of memory.
  static double pixel_load(const Conv2dProblem& problem, bool is_gpu) {
    constexpr double load = 4, line = 2.4;
    if (!is_gpu || problem.layout == Layout::nchw) return load;
    const std::int64_t channels = problem.pass == Pass::forward ? problem.c : problem.k;
    return load + line * static_cast<double>(std::min<std::int64_t>(channels, 32));
  }

  // They also store them so, a number at a time: on an H100 0.63 ms for 600,000 pixels of 64 channels.
  static double storing_cost(const Conv2dProblem& problem) {
    if (problem.layout == Layout::nchw || problem.pass == Pass::backward_filter) return 0;
    constexpr double line = 15;
    const bool forward = problem.pass == Pass::forward;
    const Conv2dElements all = elements_of(problem);
    const std::int64_t channels = forward ? problem.k : problem.c;
    return line * static_cast<double>(forward ? all.y : all.x) *
           static_cast<double>(std::min<std::int64_t>(channels, 32));
  }

  // Of nchw's.
  static double nhwc_lines(const Conv2dShape& g) {
    constexpr double line = 0.05;
    return 1 + line * static_cast<double>(std::min<std::int64_t>(std::max(g.c, g.k), 32));
  }

  // A work item waits for what it loads, term by term: on an H200 120 cycles, and where few pixels meet a filter, so
  // that it comes from memory, 200 forward and 400 backward; 900 backward of the filter, and under nhwc more the more
  // lines its neighbours read. So many groups of a compute unit wait at once. Backward of the filter a group's sums
  // then meet.
  static double waiting_cost(const Conv2dProblem& problem, const Tiling& tiling, const devices::Device& device) {
    constexpr double at_once = 16, near = 120, forward = 200, backward = 400, of_pixel = 900, meeting = 8000,
                     multiply_adds_a_cycle = 128;
    constexpr std::int64_t many_pixels = 16 * places * group;
    const double units = std::max(device.info().compute_units, 1),
                 rounds = std::ceil(static_cast<double>(tiling.groups) / (at_once * units)), sum = longest_sum(problem);
    const Conv2dShape g(problem);
    const double of_term = problem.pass == Pass::forward ? (g.n * g.p * g.q >= many_pixels ? near : forward)
                                                         : (g.n * g.h * g.w >= many_pixels ? near : backward);
    const double cycles =
        problem.pass == Pass::backward_filter
            ? of_pixel * std::ceil(sum / group) * (problem.layout == Layout::nhwc ? nhwc_lines(g) : 1) + meeting
            : of_term * sum;
    return rounds * cycles * multiply_adds_a_cycle * units;
  }
};

}  // namespace

const Conv2dSolver& conv2d_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
