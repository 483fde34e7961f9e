// Convolution as matrix products on OpenCL and CUDA devices.
#include "embedded/im2col.kernel.h"
#include "solvers/conv2d/gpu_text.h"
#include "solvers/conv2d/im2col_gemm/plan.h"

namespace omniconv::solvers {
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

  Event gather(devices::Queue& queue, const Operand& x, const Operand& columns, const Part& part) const override {
    return launch(queue, "gather", part.rows, part.images * shape_.c * part.rows * shape_.q, x, size_, columns, size_,
                  {part.images, part.n, part.p});
  }
  Event scatter(devices::Queue& queue, const Operand& columns, const Operand& x, const Part& part) const override {
    return launch(queue, "scatter", part.rows, part.images * shape_.c * shape_.h * shape_.w, columns, 4, x, size_,
                  {part.images, part.n, 0});
  }
  Event reduce(devices::Queue& queue, const Operand& partials, std::int64_t count, const Operand& w) const override {
    return launch(queue, "reduce", programs_.begin()->first, filter_, partials, 4, w, size_, {count, 0, 0});
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
  Event launch(devices::Queue& queue, const char* kernel, std::int64_t rows, std::int64_t items, const Operand& from,
               std::int64_t from_size, const Operand& to, std::int64_t to_size,
               const std::array<std::int64_t, 3>& own) const {
    return launch_groups(queue, divide_up(items, group), [&](std::int64_t first, std::int64_t groups) {
      const devices::KernelArgument arguments[] = {from.buffer.impl().get(),
                                                   from.offset_bytes / from_size,
                                                   to.buffer.impl().get(),
                                                   to.offset_bytes / to_size,
                                                   own[0],
                                                   own[1],
                                                   own[2],
                                                   first};
      return queue.launch(programs_.at(rows), kernel, {{groups * group, 1}, {group, 1}}, arguments);
    });
  }

  Conv2dShape shape_;
  std::int64_t size_, filter_;
  std::map<std::int64_t, std::shared_ptr<devices::Program>> programs_;  // by rows of a part
};

class Solver final : public Conv2dSolver {
 public:
  std::string_view id() const override { return "conv2d/im2col_gemm/gpu.1"; }
  std::string refusal(const Conv2dProblem& problem, const devices::Device& device) const override {
    return conv2d_gpu_refusal(problem, device, group);
  }
  MatrixBound bound(const Conv2dProblem& problem, const devices::Device& device) const override {
    return im2col_bound(problem, device, part_sizes);
  }
  double cost(const Conv2dProblem& problem, const devices::Device& device) const override {
    return conv2d_launch_cost + im2col_cost(problem, device, part_sizes);
  }
  std::int64_t workspace_bytes(const Conv2dProblem& problem, const devices::Device& device,
                               std::int64_t limit) const override {
    return parting_for(problem, device, part_sizes, limit).bytes();
  }
  std::unique_ptr<Conv2dPlanBody> plan(const Conv2dProblem& problem, const std::shared_ptr<devices::Device>& device,
                                       std::int64_t limit) const override {
    const Parting parting = parting_for(problem, *device, part_sizes, limit);
    return std::make_unique<Im2colPlan>(problem, device, parting, limit,
                                        std::make_shared<GpuColumns>(problem, parting, *device));
  }
};

}  // namespace

const Conv2dSolver& conv2d_im2col_gemm_gpu() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
