// Convolution of groups of few channels on OpenCL and CUDA devices.
#include "embedded/depthwise_blocks.kernel.h"
#include "embedded/depthwise_filter.kernel.h"
#include "embedded/depthwise_gather.kernel.h"
#include "embedded/depthwise_planes.kernel.h"
#include "embedded/depthwise_strips.kernel.h"
#include "operations/conv2d/depthwise/tiling.h"
#include "operations/conv2d/gpu_text.h"

namespace omniconv::operations {
namespace {

using Tiling = DepthwiseTiling;
constexpr std::int64_t most_items = (std::int64_t{1} << 31) - 2 * Tiling::most_items;  // of a launch: 32-bit numbers

// A vector of so many bytes.
const char* vector_of(std::int64_t bytes) {
  return bytes == 16 ? "uint4" : bytes == 8 ? "uint2" : bytes == 4 ? "uint" : "ushort";
}

std::vector<devices::Definition> definitions_of(const Conv2dProblem& problem, const devices::Device& device,
                                                const Tiling& t) {
  std::vector<devices::Definition> all = conv2d_definitions(problem);
  const auto add = [&](const char* symbol, std::int64_t value) {
    all.push_back({symbol, value < 0 ? fmt::format("({})", value) : std::to_string(value)});
  };
  add("GROUP", t.group), add("LANES", t.lanes), add("RESIDENT", t.resident);
  add("ROWS", t.rows), add("COLUMNS", t.columns), add("CHANNELS", t.channels), add("INPUTS", t.inputs);
  add("PAIRED", t.paired ? 1 : 0), add("X_VECTOR", t.x_vector), add("Y_VECTOR", t.y_vector);
  add("ROW_LOW", t.down.low), add("SPAN_ROWS", t.down.count);
  if (t.ahead > 0) add("AHEAD", 1), add("TURN", t.turn);
  add("COLUMN_LOW", t.along.low), add("SPAN_COLUMNS", t.along.count);
  if (problem.pass == Pass::backward_filter) {
    add("TAP_ROWS", t.tap_rows), add("PARTS", t.parts), add("OVERLAPS", device.facts().has_overlap ? 1 : 0);
  } else {
    add("BACKWARD_DATA", problem.pass == Pass::backward_data ? 1 : 0);
    add("UNROLL_ROWS", t.unrolls_rows ? 1 : 0), add("HOLD_TAPS", t.holds_taps ? 1 : 0);
    add("STAGE_TAPS", t.stages_taps ? 1 : 0);
    if (t.alone > 0) add("ALONE", 1), add("TAP_VECTOR", t.tap_vector);
    if (t.planes > 0) {
      add("PLANES", t.planes), add("COPIED", t.copied), add("OUT_COPIED", t.out_copied);
      add("ASYNC", t.async), add("MATRIX_UNITS", device.facts().compute_capability >= 80 ? 1 : 0);
      all.push_back({"PART", "TYPE_f16"});  // of products that there are none of
      all.push_back({"IN_COPY", vector_of(t.copied * size_of(problem.type))});
      all.push_back({"OUT_COPY", vector_of(t.out_copied * size_of(problem.type))});
    }
  }
  return all;
}

class Plan final : public Conv2dPlanBody {
 public:
  Plan(const Conv2dProblem& problem, devices::Device& device, const Tiling& tiling)
      : Conv2dPlanBody(problem), shape_(problem), tiling_(tiling) {
    const bool filter = problem.pass == Pass::backward_filter;
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::conv2d_shape()) +
                                std::string(depthwise_blocks_kernel) +
                                std::string(tiling.ahead > 0 ? depthwise_strips_kernel : "") +
                                std::string(tiling.async > 0 ? kernels::warp_units() : "") +
                                std::string(filter ? depthwise_filter_kernel : depthwise_gather_kernel) +
                                std::string(tiling.planes > 0 ? depthwise_planes_kernel : ""),
                            definitions_of(problem, device, tiling));
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const Conv2dRun& run) const override {
    switch (problem().pass) {
      case Pass::forward: return append_gather(sequence, run.x, run.w, run.y, problem().bias ? run.bias : run.w);
      case Pass::backward_data: return append_gather(sequence, run.y, run.w, run.x, run.w);
      case Pass::backward_filter: return append_filter(sequence, run);
    }
  }

 private:
  std::int64_t elements_before(const Operand& operand) const { return operand.offset_bytes / size_of(problem().type); }

  // Without a bias some buffer stands in its place, which is not read.
  void append_gather(devices::Sequence& sequence, const Operand& input, const Operand& w, const Operand& output,
                     const Operand& bias) const {
    const bool nhwc = problem().layout == Layout::nhwc;
    const std::int64_t unit_blocks = divide_up(tiling_.units, tiling_.lanes);
    const std::int64_t of_image = tiling_.blocks() * (nhwc ? unit_blocks * tiling_.lanes : tiling_.units);
    const std::int64_t most = std::max<std::int64_t>(most_items / of_image, 1);
    for (std::int64_t first = 0; first < shape_.n; first += most) {
      const std::int64_t images = std::min(most, shape_.n - first);
      const std::int64_t groups = depthwise_groups(problem(), tiling_, images);
      const devices::KernelArgument arguments[] = {input.buffer.impl().get(),
                                                   elements_before(input),
                                                   w.buffer.impl().get(),
                                                   elements_before(w),
                                                   output.buffer.impl().get(),
                                                   elements_before(output),
                                                   bias.buffer.impl().get(),
                                                   elements_before(bias),
                                                   first,
                                                   static_cast<std::int32_t>(images)};
      sequence.launch(program_, tiling_.planes > 0 ? "gather_planes" : "gather",
                      {{groups * tiling_.group, 1}, {tiling_.group, 1}}, arguments);
    }
  }

  void append_filter(devices::Sequence& sequence, const Conv2dRun& run) const {
    const bool has_parts = tiling_.parts > 1;
    const devices::Buffer* const partials = (has_parts ? run.workspace : run.w.buffer).impl().get();
    const std::int64_t groups =
        divide_up(tiling_.units, tiling_.lanes) * divide_up(shape_.r, tiling_.tap_rows) * tiling_.parts;
    launch_groups(groups, [&](std::int64_t first, std::int64_t of_launch) {
      const devices::KernelArgument arguments[] = {run.x.buffer.impl().get(),
                                                   elements_before(run.x),
                                                   run.y.buffer.impl().get(),
                                                   elements_before(run.y),
                                                   run.w.buffer.impl().get(),
                                                   elements_before(run.w),
                                                   partials,
                                                   std::int64_t{0},
                                                   static_cast<std::int32_t>(tiling_.blocks_of_part),
                                                   first};
      sequence.launch(program_, "backward_filter", {{of_launch * tiling_.group, 1}, {tiling_.group, 1}}, arguments);
    });
    if (!has_parts) return;
    const std::int64_t outputs = tiling_.group / Tiling::adders;  // of a group
    launch_groups(divide_up(elements_of(problem()).w, outputs), [&](std::int64_t first, std::int64_t of_launch) {
      const devices::KernelArgument arguments[] = {
          partials, std::int64_t{0}, run.w.buffer.impl().get(), elements_before(run.w), run.x.buffer.impl().get(),
          first};
      sequence.launch(program_, "add_parts", {{of_launch * tiling_.group, 1}, {tiling_.group, 1}}, arguments,
                      {.overlaps = true});
    });
  }

  Conv2dShape shape_;
  Tiling tiling_;
  std::shared_ptr<devices::Program> program_;
};

class DepthwiseGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/depthwise/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, Tiling::most_items); !reason.empty()) return reason;
    if (std::string reason = depthwise_refusal(problem); !reason.empty()) return reason;
    const auto [tiling, refusal] = depthwise_tiling(problem, *device, request);
    if (!refusal.empty()) return refusal;
    return Offer{
        .cost = {depthwise_cost(problem, tiling, *device)},
        .bound = conv2d_bound(problem, depthwise_chain(problem, tiling)),
        .workspace_bytes =
            tiling.parts > 1 ? checked_multiply(tiling.parts, depthwise_part_bytes(problem), "the parts") : 0,
        .tuning = tuning_of(tiling),
        .plan = [problem, device, tiling = tiling] { return std::make_shared<Plan>(problem, *device, tiling); },
    };
  }
  std::span<const Tunable> tunables() const override { return depthwise_tunables(); }
};

}  // namespace

const Conv2dSolver& conv2d_depthwise_gpu() {
  static const DepthwiseGpu solver;
  return solver;
}

}  // namespace omniconv::operations
