// The reference as a solver: every sum in double precision.
#include "core/convert.h"
#include "devices/cpu/cpu_device.h"
#include "reference/matrix.h"
#include "solvers/gemm/gemm.h"
#include "solvers/host_operand.h"

namespace omniconv::solvers {
namespace {

class Plan final : public GemmPlanBody {
 public:
  explicit Plan(devices::CpuDevice& cpu) : cpu_(cpu) {}
  std::int64_t workspace_bytes() const override { return 0; }
  Event run(devices::Queue& queue, const GemmArrays& arrays) const override {
    return submit(queue, devices::HostTask([self = shared_from_this(), this, arrays] { execute(arrays); }));
  }

 private:
  void execute(const GemmArrays& arrays) const {
    const GemmProblem& problem = task.problem;
    const std::int64_t size = size_of(problem.type), size_c = size_of(task.output);
    const std::byte *const a = host(arrays.a), *const b = host(arrays.b), *const bias = host(arrays.bias);
    std::byte* const c = host(arrays.c);
    cpu_.parallel_for(problem.batch * problem.m, [&](std::int64_t row, int) {
      const std::int64_t batch = row / problem.m, i = row % problem.m;
      for (std::int64_t j = 0; j < problem.n; ++j) {
        double value = reference::gemm_element(problem, a + batch * task.batch_a * size, task.lda,
                                               b + batch * task.batch_b * size, task.ldb, i, j)
                           .value;
        std::byte* const to = c + (batch * task.batch_c + i * task.ldc + j) * size_c;
        if (task.bias != BiasAlong::none)
          value += load_element(problem.type, bias + (task.bias == BiasAlong::rows ? i : j) * size);
        if (task.accumulate) value += load_element(task.output, to);
        store_element(task.output, task.relu && value < 0 ? 0.0 : value, to);
      }
    });
  }

  devices::CpuDevice& cpu_;
};

class Solver final : public GemmSolver {
 public:
  std::string_view id() const override { return "gemm/double/cpu.1"; }
  std::string refusal(const GemmTask& task, const devices::Device& device) const override {
    if (task.images) return "reads stored matrices alone";
    return device.kind() == devices::DeviceKind::cpu ? "" : "runs on the CPU alone";
  }
  // Sums in f64; what is left is far below the rounding of fp32, and of f64 a chain.
  MatrixBound bound(const GemmTask& task, const devices::Device&) const override {
    return {.chain = task.problem.type == DataType::f64 ? static_cast<double>(task.problem.k) : 0};
  }
  double cost(const GemmTask& task, const devices::Device&) const override {
    constexpr double scalar = 800;  // every element is looked up by itself
    const GemmProblem& problem = task.problem;
    return scalar * static_cast<double>(problem.batch) * static_cast<double>(problem.m) *
           static_cast<double>(problem.n) * static_cast<double>(problem.k);
  }
  std::int64_t workspace_bytes(const GemmTask&, const devices::Device&, std::int64_t) const override { return 0; }
  std::unique_ptr<GemmPlanBody> plan(const GemmTask&, const std::shared_ptr<devices::Device>& device,
                                     std::int64_t) const override {
    return std::make_unique<Plan>(dynamic_cast<devices::CpuDevice&>(*device));
  }
};

}  // namespace

const GemmSolver& gemm_reference() {
  static const Solver solver;
  return solver;
}

}  // namespace omniconv::solvers
