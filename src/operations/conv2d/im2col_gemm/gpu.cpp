// Convolution as matrix products on OpenCL and CUDA devices.
#include <array>
#include <map>
#include "embedded/im2col.kernel.h"
#include "operations/conv2d/gpu_text.h"

#include "operations/conv2d/im2col_gemm/plan.h"

namespace omniconv::operations {
namespace {

constexpr std::int64_t group = 256;
// Enough for every compute unit, and little of the device's memory.
constexpr PartSizes part_sizes{.column_bytes = std::int64_t{1} << 30, .images_side_by_side = true};

class GpuColumns final : public Columns {
 public:
  GpuColumns(const Conv2dProblem& problem, const Parting& parting, devices::Device& device)
      : shape_(problem), size_(size_of(problem.type)), filter_(elements_of(problem).w) {
    if (!parting.has_columns && problem.pass != Pass::backward_filter) return;  // x is multiplied as it is
    build(problem, device, parting.rows);
    if (shape_.p % parting.rows != 0) build(problem, device, shape_.p % parting.rows);
  }

  double compile_seconds() const override {
    double seconds = 0;
    for (const auto& [rows, program] : programs_) seconds += program->compile_seconds();
    return seconds;
  }

  void gather(devices::Sequence& sequence, const Operand& x, const Operand& columns,
              const ColumnPart& part) const override {
    launch(sequence, "gather", part.rows, part.images * shape_.c * part.rows * shape_.q, x, size_, columns, size_,
           {part.images, part.n, part.p});
  }
  void scatter(devices::Sequence& sequence, const Operand& columns, const Operand& x,
               const ColumnPart& part) const override {
    launch(sequence, "scatter", part.rows, part.images * shape_.c * shape_.h * shape_.w, columns, 4, x, size_,
           {part.images, part.n, 0});
  }
  void reduce(devices::Sequence& sequence, const Operand& partials, std::int64_t count,
              const Operand& w) const override {
    launch(sequence, "reduce", programs_.begin()->first, filter_, partials, 4, w, size_, {count, 0, 0});
  }

 private:
  void build(const Conv2dProblem& problem, devices::Device& device, std::int64_t rows) {
    Conv2dProblem without_bias = problem;  // products add it
    without_bias.bias = without_bias.relu = false;
    std::vector<devices::Definition> definitions = conv2d_definitions(without_bias);
    definitions.push_back({"ROWS", fmt::format("{}L", rows)});
    definitions.push_back({"GROUP", std::to_string(group)});
    programs_[rows] = device.build(
        std::string(kernels::gemm_elements()) + std::string(kernels::conv2d_shape()) + std::string(im2col_kernel),
        definitions);
  }

  // Sizes of elements in bytes.
  void launch(devices::Sequence& sequence, const char* kernel, std::int64_t rows, std::int64_t items,
              const Operand& from, std::int64_t from_size, const Operand& to, std::int64_t to_size,
              const std::array<std::int64_t, 3>& own) const {
    launch_groups(divide_up(items, group), [&](std::int64_t first, std::int64_t groups) {
      const devices::KernelArgument arguments[] = {from.buffer.impl().get(),
                                                   from.offset_bytes / from_size,
                                                   to.buffer.impl().get(),
                                                   to.offset_bytes / to_size,
                                                   own[0],
                                                   own[1],
                                                   own[2],
                                                   first};
      sequence.launch(programs_.at(rows), kernel, {{groups * group, 1}, {group, 1}}, arguments, {.overlaps = true});
    });
  }

  Conv2dShape shape_;
  std::int64_t size_, filter_;
  std::map<std::int64_t, std::shared_ptr<devices::Program>> programs_;  // by rows of a part
};

class Im2colGemmGpu final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/im2col_gemm/gpu.1"; }
  Answer offer(const Conv2dProblem& problem, const DevicePointer& device, const SolverOptions& request) const override {
    if (std::string reason = conv2d_gpu_refusal(problem, *device, group); !reason.empty()) return reason;
    return im2col_offer(problem, device, part_sizes, request, [=](const Parting& parting) {
      return std::make_shared<GpuColumns>(problem, parting, *device);
    });
  }
  std::span<const Tunable> tunables() const override {
    static const std::vector<Tunable> all = prefixed("gemm", gemm_tiled_gpu().tunables());
    return all;
  }
};

}  // namespace

const Conv2dSolver& conv2d_im2col_gemm_gpu() {
  static const Im2colGemmGpu solver;
  return solver;
}

}  // namespace omniconv::operations
