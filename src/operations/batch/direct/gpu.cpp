// Batches on OpenCL and CUDA devices.
#include <algorithm>
#include <array>

#include "core/checked.h"
#include "embedded/batch.kernel.h"
#include "operations/batch/batch.h"
#include "operations/batch/draw.h"
#include "operations/gpu_limits.h"
#include "text/device_text.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 256, most_quads = 4;
constexpr std::int64_t most_local_channels = 4;                      // of a table that groups keep: 4 KB
constexpr std::int64_t largest_image = (std::int64_t{1} << 30) - 1;  // whose elements have numbers of 32 bits

// How the kernels take an image.
struct Shape {
  std::int64_t c = 0, h = 0, w = 0;
  bool is_nhwc = false, has_rows = false;  // that are whole quads
  std::int64_t quads = 1;                  // of a work item

  Shape(const BatchProblem& p, const devices::Device& device)
      : c(p.c), h(p.h), w(p.w), is_nhwc(p.layout == Layout::nhwc && p.c > 1) {
    if (!has_draw(p)) w = h * w, h = 1;  // nothing moves: a plane is as good as a row
    has_rows = w % 4 == 0 && (!is_nhwc || c <= most_local_channels);
    // As few quads as an image is made by in groups of most_quads, and in more groups where these would leave
    // multiprocessors idle.
    constexpr std::int64_t groups_of_unit = 2;
    const std::int64_t all = divide_up(has_rows ? row_quads() : any_quads(), group),
                       most = has_rows && is_nhwc ? std::max<std::int64_t>(most_quads / c, 1) : most_quads,
                       wanted = divide_up(groups_of_unit * std::max(device.info().compute_units, 1), p.n);
    quads = divide_up(all, std::clamp(wanted, divide_up(all, most), all));
  }
  // Of one channel, or of all where these are innermost.
  std::int64_t row_quads() const { return (is_nhwc ? 1 : c) * h * w / 4; }
  // Of elements; up to one more than there would be if the image began with one.
  std::int64_t any_quads() const { return divide_up(c * h * w + 3, 4); }
};

class Plan final : public BatchPlanBody {
 public:
  Plan(const BatchProblem& problem, devices::Device& device) : BatchPlanBody(problem), shape_(problem, device) {
    const std::string type = fmt::format("TYPE_{}", name(problem.type));
    const auto flag = [](bool value) { return value ? "1" : "0"; };
    const std::vector<devices::Definition> definitions = {
        {"TYPE", type},
        {"OUTPUT", type},
        {"IS_NHWC", flag(shape_.is_nhwc)},
        {"GATHERED", flag(problem.gathered)},
        {"FLIP", flag(problem.flip)},
        {"SHIFT", flag(problem.shift > 0)},
        {"CHANNELS", std::to_string(problem.c <= most_local_channels ? problem.c : 0)},
        {"ROWS", flag(shape_.has_rows)},
        {"USE", std::to_string(use_of_draws)},
        {"GROUP", std::to_string(group)},
        {"QUADS", std::to_string(shape_.quads)}};
    program_ = device.build(std::string(kernels::gemm_elements()) + std::string(kernels::stored_elements()) +
                                std::string(kernels::philox()) + std::string(batch_kernel),
                            definitions);
  }
  double compile_seconds() const override { return program_->compile_seconds(); }

  void append(devices::Sequence& sequence, const BatchArrays& run, std::span<const Scalar> scalars,
              const Operand&) const override {
    const BatchProblem& p = problem();
    const std::int64_t size = size_of(p.type);
    const bool by_rows = shape_.has_rows && is_aligned(run.images, 4) && is_aligned(run.y, 4 * size);
    const std::int64_t chunks = divide_up(by_rows ? shape_.row_quads() : shape_.any_quads(), shape_.quads * group);
    const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
    const auto scalar = [&](std::size_t i) { return i < scalars.size() ? scalars[i] : Scalar(0); };
    for (std::int64_t first = 0, count = 0; first < p.n; first += count) {
      count = std::min(most_groups / chunks, p.n - first);
      const std::array<devices::KernelArgument, 19 + most_batch_scalars> arguments = {run.images.buffer.impl().get(),
                                                                                      run.images.offset_bytes,
                                                                                      run.labels.buffer.impl().get(),
                                                                                      run.labels.offset_bytes,
                                                                                      run.order.buffer.impl().get(),
                                                                                      run.order.offset_bytes / 4,
                                                                                      run.table.buffer.impl().get(),
                                                                                      run.table.offset_bytes / 4,
                                                                                      run.y.buffer.impl().get(),
                                                                                      run.y.offset_bytes / size,
                                                                                      run.classes.buffer.impl().get(),
                                                                                      run.classes.offset_bytes / 4,
                                                                                      number(p.m),
                                                                                      number(shape_.c),
                                                                                      number(shape_.h),
                                                                                      number(shape_.w),
                                                                                      number(p.shift),
                                                                                      number(chunks),
                                                                                      first,
                                                                                      scalar(0),
                                                                                      scalar(1),
                                                                                      scalar(2),
                                                                                      scalar(3),
                                                                                      scalar(4)};
      sequence.launch(program_, by_rows ? "batch_rows" : "batch", {{count * chunks * group}, {group}}, arguments);
    }
  }

 private:
  static bool is_aligned(const Operand& operand, std::int64_t bytes) {
    const std::uint64_t begin =
        operand.buffer.impl()->place().address + static_cast<std::uint64_t>(operand.offset_bytes);
    return begin % static_cast<std::uint64_t>(bytes) == 0;
  }

  Shape shape_;
  std::shared_ptr<devices::Program> program_;
};

class DirectGpu final : public BatchSolver {
 public:
  std::string_view id() const override { return "batch/direct/gpu.1"; }
  Answer offer(const BatchProblem& problem, const DevicePointer& device, const SolverOptions&) const override {
    if (device->kind() == devices::DeviceKind::cpu) return "this variant runs on OpenCL and CUDA devices";
    if (problem.type == DataType::f64) return "f64 is served on the CPU, since not every GPU has double precision";
    if (const std::int64_t elements = elements_of_image(problem); elements > largest_image)
      return fmt::format("an image has {} elements, and {} are the most here", elements, largest_image);
    if (std::string reason = group_refusal(*device, group); !reason.empty()) return reason;
    return Offer{
        .cost = {launch_cost(*device) + byte_cost(*device) * least_bytes(problem)},
        .bound = {.exact = true},
        .plan = [=] { return std::make_shared<Plan>(problem, *device); },
    };
  }
};

}  // namespace

const BatchSolver& batch_direct_gpu() {
  static const DirectGpu solver;
  return solver;
}

}  // namespace omniconv::operations
